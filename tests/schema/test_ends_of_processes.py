"""How the end of a process is told."""

from __future__ import annotations

import pytest

from det_native.schema.endings import Ended, describe


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (Ended(1, 5 << 20, False), "exit code 1 (peak memory 5 MiB)"),
        (Ended(-11, 5 << 20, False), "killed by signal 11 (SIGSEGV); peak memory 5 MiB"),
        (
            Ended(-9, 5 << 20, False),
            "killed by signal 9 (SIGKILL); peak memory 5 MiB; "
            "if nobody killed it, the system may have run out of memory",
        ),
        (Ended(-9, None, True), "killed by signal 9 (SIGKILL); the system had run out of memory"),
    ],
)
def test_an_end_is_told_with_its_cause(ended: Ended, text: str) -> None:
    assert describe(ended, asked_to_end=False) == text


def test_an_end_that_was_asked_for_is_no_failure() -> None:
    assert describe(Ended(-15, None, False), asked_to_end=True) == "ended on request (SIGTERM)"
