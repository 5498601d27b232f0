"""What a program has asked of an experiment is answered alike where it runs again; all else is an error."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from det_native.client.history import rows_of
from det_native.client.replayed_source import RecordingSource, replayed
from det_native.client.source import Source
from det_native.errors import TrialDefinitionError
from det_native.schema.rest import MetricRow


class Rows(Source):
    url = "http://there"

    def metrics(self, trial_id: int, kind: str, after_batch: int = 0) -> list[MetricRow]:
        return [MetricRow(batch=2, metrics={"loss": math.nan, "best": math.inf, "value": 0.1 + trial_id})]

    def kill(self, experiment_id: int | str) -> None:
        return None


def test_the_last_answer_to_each_question_is_given_again() -> None:
    source: Any = RecordingSource(Rows())  # type: ignore[abstract]
    assert source.url == "http://there"
    source.metrics(1, "training")
    source.metrics(2, kind="training")
    source.kill(3)
    again = replayed(3, source.encoded(), "train.py, line 3", _no_files, None, None).source
    [row] = rows_of(again, 1, "training")
    assert [math.isnan(row["loss"]), row["best"], row["value"]] == [True, math.inf, 1.1]
    assert again.metrics(2, kind="training", after_batch=0)[0].metrics["value"] == 2.1
    again.kill(3)


@pytest.mark.parametrize("ask", [lambda source: source.metrics(1, "validation"), lambda source: source.blob("abc")])
def test_what_was_not_asked_is_an_error_that_names_the_call(ask: Any) -> None:
    nothing = RecordingSource(Rows()).encoded()  # type: ignore[abstract]
    again = replayed(3, nothing, "train.py, line 3", _no_files, None, None).source
    with pytest.raises(TrialDefinitionError, match=r"the training call in train\.py, line 3, which does not train"):
        ask(again)


def _no_files(uuid: str) -> AbstractContextManager[Path]:
    return nullcontext(Path(uuid))
