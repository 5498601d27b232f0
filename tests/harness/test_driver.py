"""One driver for every loop: ours, one that calls us back, one of the user's. A counter stands for the framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from det_harness.trial.driver import Driver
from det_harness.trial.schedule import Finish, Periods, Schedule, Train
from det_harness.trial.services import Services

from det_native.errors import TrialDefinitionError
from det_native.schema.environment import TrialEnvironment


class Counter:
    """Counts, and notes what it was called for."""

    validated_by, verb = "count()", "return"

    def __init__(self, metrics: Mapping[str, Any] | None = None, *, awaits_uploads: bool = False) -> None:
        self.events: list[Any] = []
        self.awaits_uploads = awaits_uploads
        self._metrics = metrics

    def report(self) -> None:
        self.events.append("report")

    @contextmanager
    def validation(self) -> Iterator[Mapping[str, Any] | None]:
        self.events.append("evaluate")
        yield self._metrics
        self.events.append("evaluated")

    def validated(self, metrics: dict[str, float]) -> None:
        self.events.append(metrics)

    def save(self) -> None:
        self.events.append("save")

    def uploaded(self, uuid: str) -> None:
        self.events.append(uuid)

    def wait(self) -> None:
        self.events.append("wait")


class Kept:
    """Reporter and checkpoints."""

    def __init__(self, events: list[Any], best: float | None) -> None:
        self._events, self._best, self.asked = events, best, 0

    def validation(self, batch: int, metrics: Mapping[str, float | None]) -> None:
        self._events.append(batch)

    def best_metric(self) -> float | None:
        self.asked += 1
        return self._best

    def published(self) -> list[str]:
        return [f"saved {count}" for count in range(self._events.count("save"))][-1:]


def services(
    port: Counter, best: float | None = None, metric: str | None = "loss", **periods: Any
) -> tuple[Services, Kept]:
    kept = Kept(port.events, best)
    environment = TrialEnvironment(config={"searcher": {"metric": metric}}, hparams={})
    schedule = Schedule(Periods(**{"length": 4, "validation_period": 2, **periods}))
    either: Any = kept
    return Services(environment, schedule, either, either, lambda: False), kept


def test_a_loop_of_ours_trains_between_what_is_due() -> None:
    port = Counter({"loss": 1.0})
    found, _ = services(port)
    driver = Driver(found, port)

    def train(until: int) -> None:
        port.events.append(f"train {until}")
        found.schedule.trained(until)

    driver.run(train)
    outcome = driver.finish("result")
    validated = ["report", "evaluate", 2, {"loss": 1.0}, "evaluated", "report", "save"]
    at_end = ["report", "save", "report", "evaluate", 4, {"loss": 1.0}, "evaluated", "report"]
    assert port.events == ["train 2", *validated, "train 4", *at_end, "wait"]
    assert (outcome.batches, outcome.stopped, outcome.result) == (4, False, "result")


def test_a_loop_that_calls_back_is_told_until_when_to_train_and_may_have_validated_itself() -> None:
    port = Counter({"loss": 1.0})
    found, _ = services(port, policy="none", validation_period=0)
    driver = Driver(found, port)
    assert driver.advance() == Train(4)
    found.schedule.trained(1)
    assert driver.advance({"loss": 3.0}) == Train(4)
    assert port.events == ["report", 1, {"loss": 3.0}]
    found.schedule.request_stop()
    assert driver.advance() == Finish(stopped=True)
    assert driver.finish().stopped


def test_a_checkpoint_of_a_stop_knows_of_the_validation_that_the_loop_has_made() -> None:
    port = Counter({"loss": 1.0})
    found, _ = services(port, policy="none")
    found.schedule.trained(2)
    found.schedule.request_stop()
    assert Driver(found, port).advance({"loss": 3.0}) == Finish(stopped=True)
    assert port.events == ["report", 2, {"loss": 3.0}, "report", "save", "report"]


@pytest.mark.parametrize(
    ("policy", "best", "saved", "asked"), [("best", 0.5, 0, 1), ("best", 2.0, 1, 1), ("all", 0.5, 1, 0)]
)
def test_the_best_validation_is_saved(policy: str, best: float, saved: int, asked: int) -> None:
    port = Counter({"loss": 1.0})
    found, kept = services(port, best, policy=policy)
    found.schedule.trained(2)
    Driver(found, port).advance()
    assert port.events.count("save") == saved
    assert kept.asked == asked


def test_where_trials_are_not_compared_there_is_no_best() -> None:
    port = Counter({"loss": 1.0})
    found, kept = services(port, metric=None)
    found.schedule.trained(2)
    Driver(found, port).advance()
    assert (port.events.count("save"), kept.asked) == (0, 0)


def test_nothing_to_validate_with_counts_as_validated() -> None:
    port = Counter(None)
    found, _ = services(port, initial_validation=True)
    assert Driver(found, port).advance() == Train(2)
    assert port.events == ["report", "evaluate", "evaluated"]


def test_metrics_are_checked_once_for_all_frameworks() -> None:
    port = Counter({"accuracy": 1.0})
    found, _ = services(port, initial_validation=True)
    with pytest.raises(TrialDefinitionError, match=r"searcher\.metric is 'loss', but count\(\) returned accuracy"):
        Driver(found, port).advance()


def test_who_waits_for_uploads_is_told_between_two_actions() -> None:
    port = Counter({"loss": 1.0}, awaits_uploads=True)
    found, _ = services(port, policy="all")
    found.schedule.trained(2)
    assert Driver(found, port).advance() == Train(4)
    assert port.events[-2:] == ["save", "saved 0"]
