"""Work beside a training rests for many times what it takes, until somebody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from det_harness.trial.throttle import Throttle

PATIENCE = 60
SECONDS = 0.005


def _work(pieces: int) -> Iterator[int]:
    """Yield numbers, each of which takes the processor for some milliseconds."""
    for number in range(pieces):
        begin = time.thread_time()
        while time.thread_time() - begin < SECONDS:
            pass
        yield number


def test_work_takes_a_small_share_of_a_core() -> None:
    begin = time.perf_counter()
    assert list(Throttle(beside=True)(_work(4))) == [0, 1, 2, 3]
    assert time.perf_counter() - begin > 10 * 4 * SECONDS


def test_who_waits_ends_the_rests() -> None:
    throttle, begun, done = Throttle(beside=True), threading.Event(), threading.Event()

    def run() -> None:
        for _ in throttle(_work(10_000)):  # 1000 s with its rests
            begun.set()
            if done.is_set():
                return

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(PATIENCE)
    throttle.release()
    begin = time.perf_counter()
    assert len(list(throttle(_work(20)))) == 20
    hurried = time.perf_counter() - begin
    done.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert hurried < 10


def test_a_file_has_all_that_was_written_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 40_000  # of several pieces
    for throttle in (Throttle(), Throttle(beside=True)):
        with (tmp_path / "file").open("wb", buffering=0) as stream:
            file = throttle.file(stream)
            assert file.write(memoryview(content)) == len(content)
            assert file.write(b"end") == 3
            file.flush()
        assert (tmp_path / "file").read_bytes() == content + b"end"
