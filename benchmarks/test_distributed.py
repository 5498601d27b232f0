"""Cost of one training batch on two slots over a hand-written loop with torch's DistributedDataParallel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("ddp_ranks.py")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[[str], float]]:
    """Start two processes in one process group; gives what makes both do a run, and returns its seconds per batch."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), str(tmp_path)],
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


def test_two_slots(paired: Any, pair: Callable[[str], float]) -> None:
    paired(
        "one batch on two slots (gloo), medium transformer, over DistributedDataParallel by hand",
        lambda: pair("ours"),
        lambda: pair("ddp"),
        goal=1.02,
        rounds=11,
        value=_per_batch,
    )
