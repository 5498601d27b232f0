"""When an execution begins and ends, by the clock of the times that files have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from det_native.capture.side_effects.paths_seen import PathsSeen

#: Seconds by which two numbers of the same time may differ.
ROUNDING = 1e-6
TIMES = 50


@pytest.mark.skipif(sys.platform != "linux", reason="Other systems give files the time of the usual clock.")
def test_what_is_written_lies_between_the_beginning_and_the_end_of_its_execution_alone(tmp_path: Path) -> None:
    before = PathsSeen()
    before.open(str(tmp_path / "before"), os.O_WRONLY | os.O_CREAT, sys._getframe())
    before.end()
    for number in range(TIMES):
        seen = PathsSeen()
        path = tmp_path / str(number)
        seen.open(str(path), os.O_WRONLY | os.O_CREAT, sys._getframe())
        # At once: a tick of the file system's clock is longer. Python's open() would also ask for the file's times,
        # whereupon a newer Linux mostly gives it those of a finer clock.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"1")
        os.close(descriptor)
        seen.end()
        written = path.stat().st_ctime
        assert before.ended is not None
        assert seen.ended is not None
        assert before.ended < seen.started, f"{before.ended!r} < {seen.started!r} ({number})"
        assert seen.started - ROUNDING <= written <= seen.ended, (
            f"{seen.started!r} <= {written!r} <= {seen.ended!r} ({number})"
        )
        before = seen
