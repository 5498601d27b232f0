"""What the record of a local run says of it while it goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from det_harness.local.report import LocalReporter

from det_native.experimental.local import record as module
from det_native.experimental.local.record import Record
from det_native.experimental.local.samples import Sample, Stage
from det_native.local.store import LocalStore
from det_native.schema.config import ExperimentConfig
from det_native.schema.states import TrialState

CONFIG = {"searcher": {"name": "single", "metric": "error", "max_length": {"batches": 100}}}


class Told:
    """Stands for the thread that looks at the reports: the test says when it has looked."""

    def __init__(self, *arguments: object) -> None:
        self.tell: Callable[[LocalReporter, int], None] = arguments[-1]  # type: ignore[assignment]
        looks.append(self)

    def close(self) -> None:
        """End nothing."""


looks: list[Told] = []


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    looks.clear()
    monkeypatch.setattr(module, "Spool", Told)
    found = Record(LocalStore.create(), ExperimentConfig.model_validate(CONFIG), "torch", None, whole_epochs=False)
    found.begin(2)
    return found


def test_the_time_left_counts_from_the_first_batches_and_not_from_the_imports(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    reporter = LocalReporter()
    record.begin_trial(Stage(1, Sample({}, 1)), 100)
    record.follow(reporter)
    store = LocalStore.find("local-1")
    seconds = 60.0  # compiling
    looks[-1].tell(reporter, 1)
    assert store.experiment().seconds_left is None
    for batch in range(2, 12):
        seconds += 1.0
        looks[-1].tell(reporter, batch)
    assert store.experiment().seconds_left == pytest.approx(189.0)


def test_a_trial_knows_since_when_it_has_its_best_value(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["one", "two", "three"])
    record.begin_trial(Stage(1, Sample({}, 1)), 100)
    monkeypatch.setattr(module, "now", lambda: next(times))
    reporter = LocalReporter("loss", smaller_is_better=True)
    record.follow(reporter)
    found = []
    for batch, value in ((10, 0.5), (20, 0.6), (30, 0.4)):
        reporter.validation(batch, {"loss": value})
        looks[-1].tell(reporter, batch)
        found.append(LocalStore.find("local-1").trials()[0].best_at)
    assert found == ["one", "one", "two"]


@pytest.mark.parametrize(("state", "progress"), [(TrialState.ERROR, 0.125), (TrialState.COMPLETED, 0.5)])
def test_progress_is_what_was_done(record: Record, state: TrialState, progress: float) -> None:
    record.begin_trial(Stage(1, Sample({}, 1)), 64)
    reporter = LocalReporter()
    record.follow(reporter)
    record.end_trial(reporter, state, batches=16)
    assert LocalStore.find("local-1").experiment().progress == progress
