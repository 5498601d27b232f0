"""Stopping a local run from another process, as Jupyter's stop button and Ctrl-C do."""

from __future__ import annotations

import os
import signal

from det_native.errors import UnsupportedFeatureError
from det_native.local.store import LocalStore


def interrupt(store: LocalStore) -> None:
    """Interrupt the process of a run, which ends then after its batch, with a checkpoint; what has ended is left.

    Raises
    ------
    UnsupportedFeatureError
        If it cannot be interrupted from here.
    """
    if store.experiment().state.terminal:
        return
    runner = store.runner()
    # Ctrl-C does not reach a training outside the main thread, and numbers of another machine mean nothing here.
    if runner is None or not runner.is_near or not runner.interruptible:
        raise UnsupportedFeatureError(
            f"Experiment {store.id} runs in another process, which cannot be interrupted from here; interrupt it there "
            "(Ctrl-C, or the stop button of its notebook)."
        )
    os.kill(runner.pid, signal.SIGINT)


def not_on_a_master(shown_id: str, asked: str) -> str:
    """Return why a local run cannot be paused or resumed, and what can be done."""
    return (
        f"Experiment {shown_id} is a local run, which cannot be {asked}: Ctrl-C ends it with a checkpoint. "
        "What is to be paused and continued has to be submitted: call init() or create() without local=True."
    )
