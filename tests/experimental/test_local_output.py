"""What a run prints goes where it went before, and into its log."""

from __future__ import annotations

import io
import logging
import sys
from contextlib import closing, redirect_stdout
from pathlib import Path

import pytest

from det_native.experimental.local.output import copied_output
from det_native.local.log import LogWriter, read_log


def lines(folder: Path) -> list[tuple[str, str]]:
    return [(line.stream, line.text) for line in read_log(folder)]


def test_prints_and_loggers_go_on_and_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("of the user")
    handler = logging.StreamHandler()
    logger.addHandler(handler)
    before = sys.stdout
    try:
        with closing(LogWriter(tmp_path, 1, "run")) as log, copied_output(log):
            print("one", 2)
            print("no end yet", end="")
            print("!", file=sys.stdout)
            logger.warning("careful")
            sys.stdout.writelines(["three\n", "fo"])
            assert sys.stdout.encoding == before.encoding
            assert sys.stdout.isatty() == before.isatty()
    finally:
        logger.removeHandler(handler)
    print("after")
    assert sys.stdout is before
    assert handler.stream is sys.stderr
    assert lines(tmp_path) == [
        ("stdout", "one 2"),
        ("stdout", "no end yet!"),
        ("stderr", "careful"),
        ("stdout", "three"),
        ("stdout", "fo"),
    ]
    printed = capsys.readouterr()
    assert printed.out == "one 2\nno end yet!\nthree\nfoafter\n"
    assert printed.err == "careful\n"


def test_a_bar_that_is_written_over_in_place_is_one_line(tmp_path: Path) -> None:
    with redirect_stdout(io.StringIO()), closing(LogWriter(tmp_path, 1, "run")) as log, copied_output(log):
        for percent in range(100):
            print(f"\r{percent}%", end="")
        print("\r100%")
        print("done")
    assert lines(tmp_path) == [("stdout", "100%"), ("stdout", "done")]


def test_a_disk_that_is_full_does_not_end_the_training(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "missing", 1, "run")
    shown = io.StringIO()
    with redirect_stdout(shown), copied_output(log):
        print("goes on")
    assert shown.getvalue() == "goes on\n"


def test_a_stream_that_somebody_keeps_goes_on_after_the_run(tmp_path: Path) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        with closing(LogWriter(tmp_path, 1, "run")) as log, copied_output(log):
            kept = sys.stdout
        print("later", file=kept)
    assert shown.getvalue() == "later\n"
    assert lines(tmp_path) == []
