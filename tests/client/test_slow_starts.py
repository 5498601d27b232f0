"""A master that starts slowly, since its machine is slow or busy, is waited for; one that does nothing is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from det_native.client import starting

pytestmark = pytest.mark.slow

LIMIT = 2.0
# Works for a while before it is ready.
WORKING = """
import os, sys, time
begun = time.monotonic()
while time.monotonic() - begun < float(sys.argv[2]):
    pass
os.write(int(sys.argv[1]), b"ready\\n")
"""


class Starting:
    """A process that says when it is ready, as a master does."""

    def __init__(self, seconds: float) -> None:
        self.line, write_end = os.pipe()
        command = [sys.executable, "-c", WORKING, str(write_end), str(seconds)]
        self.process = subprocess.Popen(command, pass_fds=(write_end,))
        os.close(write_end)

    def is_ready(self) -> bool | None:
        return starting._read_until_ready(self.line, self.process.pid)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.line)


@pytest.fixture
def slow() -> Iterator[Starting]:
    made = Starting(LIMIT + 1)
    yield made
    made.end()


@pytest.fixture
def endless() -> Iterator[Starting]:
    made = Starting(3600)
    yield made
    made.end()


def test_one_that_works_is_waited_for_beyond_the_limit(slow: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "START_SECONDS", LIMIT)
    begun = time.monotonic()
    assert slow.is_ready() is True
    assert time.monotonic() - begun > LIMIT


def test_one_that_does_nothing_is_given_up(endless: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    endless.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(starting, "START_SECONDS", 0.3)
    assert endless.is_ready() is None


def test_one_that_works_without_an_end_is_given_up(endless: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "LONGEST_START_SECONDS", 0.3)
    assert endless.is_ready() is None


def test_one_that_ends_is_not_ready(slow: Starting) -> None:
    slow.process.kill()
    assert slow.is_ready() is False
