"""Cost of one training batch on two slots over loops written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from det_native.frameworks import has_horovod


@contextmanager
def running(program: str, folder: Path) -> Iterator[Callable[[str], float]]:
    """Start two processes that are connected; gives what makes both do a run, and returns its seconds per batch."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name(program)), str(rank), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    first = processes[0]
    assert first.stdin is not None
    assert first.stdout is not None
    told, said = first.stdin, first.stdout

    def run(what: str) -> float:
        print(what, file=told, flush=True)
        return float(said.readline())

    try:
        yield run
        print(file=told, flush=True)
        assert [process.wait(60) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def _per_batch(result: Any, _: float) -> float:
    return float(result)


def test_two_slots(paired: Any, tmp_path: Path) -> None:
    with running("ddp_ranks.py", tmp_path) as pair:
        paired(
            "one batch on two slots (gloo), medium transformer, over DistributedDataParallel by hand",
            lambda: pair("ours"),
            lambda: pair("ddp"),
            goal=1.02,
            rounds=11,
            value=_per_batch,
        )


@pytest.mark.skipif(not has_horovod("tensorflow"), reason="Horovod for TensorFlow is not installed here.")
def test_two_slots_of_keras(paired: Any, tmp_path: Path) -> None:
    with running("keras_ranks.py", tmp_path) as pair:
        paired(
            "one batch of Keras on two slots, medium MLP, over Horovod by hand",
            lambda: pair("ours"),
            lambda: pair("horovod"),
            goal=1.05,
            rounds=11,
            value=_per_batch,
        )
