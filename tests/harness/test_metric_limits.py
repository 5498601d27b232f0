"""A batch with more metrics than a report can have is refused at that batch, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from det_harness.trial.metrics import checked_validation
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool

from det_native.errors import TrialDefinitionError
from det_native.schema.rest import MOST_METRICS, ReportsAccepted
from det_native.schema.states import ExitReason

TOO_MANY = {f"metric {number}": 0.0 for number in range(MOST_METRICS + 1)}


class Master:
    """Takes every report."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        self.taken += reports
        return ReportsAccepted(through=len(self.taken))

    def best(self) -> float | None:
        return None


def test_as_many_as_fit_are_reported_and_one_more_is_refused(tmp_path: Path) -> None:
    master = Master()
    reporter = SpoolReporter(master, Spool(tmp_path / "spool"), metric="loss")
    fit = dict(list(TOO_MANY.items())[:MOST_METRICS])
    reporter.training([1], {name: [value] for name, value in fit.items()})
    with pytest.raises(TrialDefinitionError, match="1,001 metrics for batch 2; at most 1,000"):
        reporter.training([2], {name: [value] for name, value in TOO_MANY.items()})
    with pytest.raises(TrialDefinitionError, match="1,001 metrics for batch 2"):
        reporter.validation(2, TOO_MANY)
    reporter.exit(ExitReason.USER_ERROR, 2)
    assert reporter.close(30)
    told = [json.loads(report) for report in master.taken]
    assert [report["type"] for report in told] == ["metrics", "exit"]
    assert len(told[0]["metrics"]) == MOST_METRICS


def test_a_name_that_is_no_text_is_told_with_what_to_write(tmp_path: Path) -> None:
    by_number = {0: 0.5}
    words = r"returned a metric by the name 0 \(int\){}; names of metrics are text: write '0', or a word"
    with pytest.raises(TrialDefinitionError, match=r"Digits\.evaluate_batch\(\) " + words.format(" for batch 7")):
        checked_validation(by_number, "loss", "Digits.evaluate_batch()", batch=7)  # type: ignore[arg-type]
    reporter = SpoolReporter(Master(), Spool(tmp_path / "spool"), metric=None)
    with pytest.raises(TrialDefinitionError, match=words.format(" for batch 3")):
        reporter.training([3], by_number)  # type: ignore[arg-type]
    reporter.exit(ExitReason.USER_ERROR, 2)
    assert reporter.close(30)
    checked_by_name = pytest.importorskip("det_harness.frameworks.torch.checks").checked_by_name
    with pytest.raises(TrialDefinitionError, match=words.format("")):
        checked_by_name("Digits.evaluate_batch()", by_number)


def test_a_validation_names_who_returned_them() -> None:
    with pytest.raises(TrialDefinitionError, match=r"Digits\.evaluate_batch\(\) returned 1,001 metrics for batch 7"):
        checked_validation(TOO_MANY, None, "Digits.evaluate_batch()", batch=7)


def test_names_that_are_too_long_together_are_refused_at_their_batch(tmp_path: Path) -> None:
    reporter = SpoolReporter(Master(), Spool(tmp_path / "spool"), metric="loss")
    reporter.training([1], {"m" * 10_000: [0.5]})
    long = {f"{number}" + "m" * 10_000: 0.5 for number in range(30)}
    with pytest.raises(TrialDefinitionError, match=r"names of the metrics of batch 2 have 300,\d+ characters"):
        reporter.training([2], {name: [value] for name, value in long.items()})
    with pytest.raises(TrialDefinitionError, match="names of the metrics of batch 2"):
        reporter.validation(2, long)
    reporter.exit(ExitReason.USER_ERROR, 2)
    assert reporter.close(30)


def test_many_rows_of_many_metrics_travel_in_several_reports(tmp_path: Path) -> None:
    master = Master()
    reporter = SpoolReporter(master, Spool(tmp_path / "spool"), metric="loss")
    rows = list(range(1, 1001))
    reporter.training(rows, {f"metric {number}": [0.123456789012345] * 1000 for number in range(MOST_METRICS)})
    assert reporter.close(60)
    told = [json.loads(report) for report in master.taken]
    assert [batch for report in told for batch in report["batches"]] == rows
    assert max(map(len, master.taken)) < 8 << 20
