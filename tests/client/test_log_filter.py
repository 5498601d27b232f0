"""Lines of logs are chosen by their level, and by what stands in them."""

from __future__ import annotations

import pytest

from det_native.client.logs import Logs
from det_native.errors import ArgumentError
from det_native.schema.rest import LogLine

TEXTS = [
    "step 1, loss 0.5",
    "DEBUG:root:tiny",
    "2026-11-25 12:00:00,000 - trainer - WARNING - the loss is NaN",
    "/x/y.py:3: UserWarning: deprecated",
    "[ERROR] cannot read",
    "Traceback (most recent call last):",
    '  File "a.py", line 1, in <module>',
    "ValueError: warning of nothing",
    "the error is 0.25",
    "CRITICAL the disk burns",
]


def logs(*texts: str, ranks: tuple[int | None, ...] = ()) -> Logs:
    lines = enumerate(zip(texts, ranks or (None,) * len(texts), strict=True), 1)
    common = {"trial_id": 1, "run_id": "r", "time": "2026-11-25T12:00:00.000Z", "stream": "stdout"}
    return Logs(
        LogLine.model_validate({"id": number, "text": text, "rank": rank, **common}) for number, (text, rank) in lines
    )


def test_a_level_and_those_above_it() -> None:
    found = logs(*TEXTS)
    assert found.only() is found
    assert [line.text for line in found.only("DEBUG")] == TEXTS
    assert [line.text for line in found.only("info")] == [TEXTS[0], *TEXTS[2:]]
    assert [line.text for line in found.only("warn")] == [*TEXTS[2:8], TEXTS[9]]
    assert [line.text for line in found.only("error")] == [*TEXTS[4:8], TEXTS[9]]
    assert [line.text for line in found.only("critical")] == [TEXTS[9]]


def test_a_traceback_belongs_to_the_process_that_wrote_it() -> None:
    found = logs(TEXTS[5], "step 2", TEXTS[6], TEXTS[7], "step 3", ranks=(0, 1, 0, 0, 0))
    assert [line.text for line in found.only("error")] == [TEXTS[5], TEXTS[6], TEXTS[7]]


def test_a_text_is_found_as_it_stands() -> None:
    found = logs(*TEXTS)
    assert [line.text for line in found.only(contains="nan")] == [TEXTS[2]]
    assert [line.text for line in found.only(contains="0.5")] == [TEXTS[0]]
    assert [line.text for line in found.only("error", "READ")] == [TEXTS[4]]
    assert str(found.only(contains="nothing of the kind")) == "no such log lines"


def test_what_is_no_level_is_said() -> None:
    with pytest.raises(ArgumentError, match=r"level: 'loud' is none; there are debug, info,"):
        logs("a").only("loud")
