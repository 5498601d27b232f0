"""Trains counters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_harness.frameworks.base import FrameworkHarness
from det_harness.trial import rng
from det_harness.trial.driver import Driver
from det_harness.trial.services import Outcome, Services

from det_native.errors import TrialDefinitionError
from det_native.schema.environment import TrialEnvironment
from toy_framework.trial import ToyTrial

_FILE = "counter.json"


class ToyHarness(FrameworkHarness):
    """What det_native's harness asks of this framework."""

    def check(self, trial_class: type) -> None:
        if not callable(getattr(trial_class, "train_batch", None)):
            raise TrialDefinitionError(f"{trial_class.__name__}.train_batch must be a method.")

    def controller(self, payload: Any, services: Services) -> ToyController:
        return ToyController(payload, services)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> ToyTrial:
        trial: ToyTrial = payload(payload.trial_context_class(environment))
        _restore(trial, directory)
        return trial


class ToyController:
    """Runs one trial: the loop is ours, and the driver says what is due between its parts."""

    validated_by, verb, awaits_uploads = "evaluate()", "return", False

    def __init__(self, trial_class: type[ToyTrial], services: Services) -> None:
        self._services = services
        self._context = trial_class.trial_context_class(services.environment)
        self._trial = trial_class(self._context)
        self._rows: dict[int, dict[str, float]] = {}
        self._driver = Driver(services, self)

    def run(self) -> Outcome:
        with self._services.checkpoints.restore() as folder:
            if folder is not None:
                self._services.schedule.restore(_restore(self._trial, folder))
                rng.load(folder)
        self._driver.run(self._train)
        return self._driver.finish()

    def _train(self, until: int) -> None:
        schedule = self._services.schedule
        done = schedule.progress.batches
        try:
            while done < until and not schedule.stop_requested:
                self._rows[done + 1] = self._trial.train_batch(done)
                done += 1
                if self._services.stop_requested() or self._context.get_stop_requested():
                    schedule.request_stop()
        except BaseException:
            self.report()
            raise
        finally:
            schedule.trained(done)

    def report(self) -> None:
        rows, self._rows = self._rows, {}
        if rows:
            names = {name for row in rows.values() for name in row}
            columns = {name: [row.get(name) for row in rows.values()] for name in sorted(names)}
            self._services.reporter.training(list(rows), columns)

    @contextmanager
    def validation(self) -> Iterator[dict[str, float]]:
        yield self._trial.evaluate()

    def validated(self, metrics: dict[str, float]) -> None:
        """Nobody wants to know."""

    def save(self) -> None:
        def write(folder: Path) -> None:
            state = {"count": self._trial.count, "steps": self._trial.steps, "schedule": schedule.snapshot()}
            (folder / _FILE).write_text(json.dumps(state))
            rng.save(folder)

        schedule = self._services.schedule
        self._services.checkpoints.save(schedule.progress.batches, write)

    def uploaded(self, uuid: str) -> None:
        """Nobody wants to know."""

    def wait(self) -> None:
        self._services.checkpoints.wait()


def _restore(trial: ToyTrial, folder: Path) -> dict[str, Any]:
    state = json.loads((folder / _FILE).read_text())
    trial.count, trial.steps = state["count"], state["steps"]
    schedule: dict[str, Any] = state["schedule"]
    return schedule
