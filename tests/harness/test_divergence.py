"""A loss that is no finite number: told at its batch, and the end of the trial where the configuration says so."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from det_harness.trial.divergence import CAUSES, LossWatch
from det_harness.trial.metrics import is_best
from rows_reporter import RowsReporter

from det_native.errors import DivergedError
from det_native.schema.environment import TrialEnvironment

NAN, INF = math.nan, math.inf


def watch(nan: str | None = None, searcher: str = "single") -> tuple[LossWatch, RowsReporter]:
    reporter = RowsReporter()
    config = {"searcher": {"name": searcher}, "nan": nan}
    return LossWatch(reporter, TrialEnvironment(config=config, hparams={})), reporter


@pytest.mark.parametrize(
    ("nan", "searcher", "stops"),
    [
        (None, "single", False),
        (None, "random", True),
        (None, "grid", True),
        ("stop", "single", True),
        ("warn", "random", False),
    ],
)
def test_a_trial_of_a_search_stops_by_default_and_another_is_told_of(nan: str, searcher: str, stops: bool) -> None:
    watched, reporter = watch(nan, searcher)
    rows = [3, 4, 5], {"loss": [0.5, NAN, NAN]}
    if stops:
        with pytest.raises(DivergedError) as caught:
            watched.training(*rows)
        assert str(caught.value) == f"The loss became NaN at batch 4. {CAUSES}"
        assert caught.value.batch == 4
        assert caught.value.without_batch == f"The loss became NaN. {CAUSES}"
        assert reporter.told is None
    else:
        watched.training(*rows)
        assert reporter.told == f"The loss became NaN at batch 4; the training goes on (nan: warn). {CAUSES}"
    assert [row.batch for row in reporter.training_rows] == [3, 4, 5], "what was told is kept"


def test_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    watched, _ = watch("warn")
    with caplog.at_level(logging.WARNING, "det_harness"):
        for batch in range(1, 5):
            watched.training([batch], {"loss": [NAN if batch > 1 else 1.0]})
    assert len(caplog.messages) == 1
    assert "at batch 2" in caplog.messages[0]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"loss": [1.0, INF]}, "The loss became infinite"),
        ({"loss": [1.0, -INF]}, "The loss became infinite"),
        ({"train_loss": [1.0, NAN]}, "The train_loss became NaN"),
        ({"loss": [1.0, 1.0], "grad_norm": [NAN, INF]}, None),
        ({"loss": [1.0, None], "kl_loss": [NAN, NAN]}, None),
        ({"d_loss": [1.0, NAN], "g_loss": [NAN, 1.0]}, None),
        ({"d_loss": [1.0, NAN], "g_loss": [NAN, NAN]}, "The d_loss became NaN"),
        ({"loss": [1e308, 1e308]}, None),
        ({"accuracy": [NAN, NAN]}, None),
        ({}, None),
    ],
)
def test_it_is_the_loss_that_counts(columns: dict[str, Any], told: str | None) -> None:
    watched, reporter = watch()
    watched.training([6, 7], columns)
    assert (reporter.told or "").startswith(f"{told} at batch 7" if told else "")
    assert (reporter.told is None) is (told is None)


def test_a_validation_that_is_nan_is_told_of_or_ends_a_trial_of_a_search() -> None:
    watched, reporter = watch()
    watched.compare_by("val_loss", smaller_is_better=True)
    watched.validation(12, {"val_loss": NAN})
    assert reporter.told == f"The metric 'val_loss' became NaN at batch 12; the training goes on (nan: warn). {CAUSES}"
    assert math.isnan(reporter.validation_rows[-1].metrics["val_loss"])
    searching, _ = watch(searcher="grid")
    searching.compare_by("val_loss", smaller_is_better=True)
    with pytest.raises(DivergedError, match="The metric 'val_loss' became NaN at batch 12") as caught:
        searching.validation(12, {"val_loss": NAN})
    assert caught.value.batch == 12


def test_only_metrics_that_trials_are_compared_by_diverge() -> None:
    searching, reporter = watch(searcher="grid")
    searching.compare_by("val_loss", smaller_is_better=True)
    searching.validation(12, {"val_loss": 0.5, "f1": NAN, "size": INF, "told": "so"})
    assert reporter.told is None


def test_an_infinite_metric_is_best_only_where_there_is_none() -> None:
    for value in (math.inf, -math.inf):
        assert not is_best(value, 0.5, smaller_is_better=True)
        assert not is_best(value, 0.5, smaller_is_better=False)
        assert is_best(value, None, smaller_is_better=True)
        assert is_best(0.5, value, smaller_is_better=True)
