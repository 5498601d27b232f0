"""A master for trainings in processes of tests."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from det_native.client.starting import ensure_master
from det_native.schema.home import Home, read_runtime
from det_native.schema.processes import wait_until_gone

# Long, for what it waits for always comes: others use the machine too.
PATIENCE = 150.0


@contextmanager
def recording_master(home: Home) -> Iterator[Home]:
    """Run a master in a home for the block, with one slot."""
    temporary = home.path / "temporary"
    temporary.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_SLOTS", "cpu:1")
        patch.setenv("TMPDIR", str(temporary))
        ensure_master(home)
    try:
        yield home
    finally:
        end_master(home)


def end_master(home: Home, how: signal.Signals = signal.SIGTERM) -> None:
    """End the master of a home, if one runs, and wait for its end."""
    runtime = read_runtime(home)
    if runtime is not None:
        os.kill(runtime.pid, how)
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


def until_sent() -> None:
    """Wait until all trainings of this process have sent what they have reported."""
    for thread in threading.enumerate():
        if thread.name == "det-reports":
            thread.join(PATIENCE)
