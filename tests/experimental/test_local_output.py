"""What a run prints goes where it went before, and into its log."""

from __future__ import annotations

import io
import logging
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from det_native.experimental.local.output import copied_output


def test_prints_and_loggers_go_on_and_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("of the user")
    handler = logging.StreamHandler()
    logger.addHandler(handler)
    before = sys.stdout
    try:
        with copied_output(tmp_path / "output.log"):
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
    assert (tmp_path / "output.log").read_text() == "one 2\nno end yet!\ncareful\nthree\nfo"
    printed = capsys.readouterr()
    assert printed.out == "one 2\nno end yet!\nthree\nfoafter\n"
    assert printed.err == "careful\n"


def test_a_disk_that_is_full_does_not_end_the_training(tmp_path: Path) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown), copied_output(tmp_path / "missing" / "output.log"):
        print("goes on")
    assert shown.getvalue() == "goes on\n"


def test_a_stream_that_somebody_keeps_goes_on_after_the_run(tmp_path: Path) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        with copied_output(tmp_path / "output.log"):
            kept = sys.stdout
        print("later", file=kept)
    assert shown.getvalue() == "later\n"
    assert (tmp_path / "output.log").read_text() == ""
