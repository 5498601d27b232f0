"""What every controller keeps, whatever its framework: a kit that runs over all of them.

A framework joins by a `Subject`; ``test_controller_contract.py`` lists them. Everything but the framework is real:
schedule, checkpoints on disk, the reporter of a local run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from det_harness.frameworks.base import harness_for
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome, Services
from rows_reporter import RowsReporter

from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage
from det_native.trial import TrialContext

SEED = 7
RECORDS, BATCH_SIZE = 40, 8
BATCHES = 13  # of the whole training; an epoch has 5

#: Called in the user's code, in each batch, with the batches begun so far, this one included.
InBatch = Callable[[int, TrialContext], None]


class Subject(ABC):
    """What a framework brings: something small to train on `RECORDS` records, in batches of `BATCH_SIZE`.

    It draws random numbers in every batch, and its validation gives ``val_loss``.
    """

    framework: ClassVar[str]

    @abstractmethod
    def payload(self, environment: TrialEnvironment, in_batch: InBatch) -> Any:
        """Return a fresh trial class or captured call, which calls `in_batch` in each batch of training."""

    def train(self, payload: Any, services: Services) -> Outcome:
        """Train what :meth:`payload` has returned, to the end."""
        return harness_for(payload).controller(payload, services).run()

    @abstractmethod
    def state(self, loaded: Any) -> Any:
        """Return what was trained, as a value that can be compared, of what the harness's ``load()`` returns."""


def _nothing(begun: int, context: TrialContext) -> None:
    """Do nothing."""


@dataclass
class Runs:
    """The runs of one trial: each goes on from the checkpoint that it is given, all report to the same."""

    subject: Subject
    directory: Path
    config: dict[str, Any] = field(default_factory=dict)
    reporter: RowsReporter = field(default_factory=lambda: RowsReporter("val_loss"))

    @property
    def environment(self) -> TrialEnvironment:
        """The trial's."""
        config = {
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": BATCHES}},
            "records_per_epoch": RECORDS,
            "scheduling_unit": 4,
            "checkpoint_policy": "none",
            "resources": {"slots_per_trial": 1},
            **self.config,
        }
        return TrialEnvironment(config=config, hparams={"global_batch_size": BATCH_SIZE}, trial_seed=SEED)

    def run(
        self,
        *,
        in_batch: InBatch = _nothing,
        stop: Callable[[], bool] = lambda: False,
        resume: CheckpointManifest | None = None,
    ) -> Outcome:
        """Run the controller to its end, as a worker does."""
        environment = self.environment
        storage = CheckpointStorage(str(self.directory))
        owner = CheckpointOwner(self.subject.framework, environment.hparams)
        checkpoints = TrialCheckpoints(storage, owner, self.reporter, resume=resume)
        schedule = Schedule(periods_of(environment))
        services = Services(environment, schedule, self.reporter, checkpoints, stop)
        with rng.preserved():
            rng.seed_process(SEED)
            payload = self.subject.payload(environment, in_batch)
            rng.seed_all(SEED)
            try:
                return self.subject.train(payload, services)
            finally:
                checkpoints.wait()

    @property
    def training(self) -> list[int]:
        """The batches of the rows of training metrics."""
        return [row.batch for row in self.reporter.training_rows]

    @property
    def validations(self) -> list[int]:
        """The batches of the validations."""
        return [row.batch for row in self.reporter.validation_rows]

    @property
    def saved(self) -> list[int]:
        """The batches of the checkpoints."""
        return [manifest.batch for _, manifest in self.reporter.checkpoints]

    def last(self) -> CheckpointManifest:
        """The newest checkpoint."""
        return self.reporter.checkpoints[-1][1]

    def state(self) -> Any:
        """Load the newest checkpoint back, and return what was trained."""
        payload = self.subject.payload(self.environment, _nothing)
        folder = self.directory / self.last().uuid
        return self.subject.state(harness_for(payload).load(payload, folder, self.environment))


class UsersError(Exception):
    """Raised by the user's code."""


class ControllerContract:
    """The tests; a subclass gives the fixture ``subject``."""

    def test_trains_validates_and_saves_where_the_schedule_says(self, subject: Subject, tmp_path: Path) -> None:
        periods = {"min_validation_period": {"batches": 4}, "min_checkpoint_period": {"batches": 3}}
        runs = Runs(subject, tmp_path, {**periods, "perform_initial_validation": True})
        begun: list[int] = []
        outcome = runs.run(in_batch=lambda batch, _: begun.append(batch))
        assert (outcome.batches, outcome.stopped) == (BATCHES, False)
        assert begun == runs.training == list(range(1, BATCHES + 1))
        assert runs.validations == [0, 4, 8, 12, 13]
        assert runs.saved == [3, 6, 9, 12, 13]
        assert all("val_loss" in row.metrics for row in runs.reporter.validation_rows)

    def test_stops_early_when_it_is_asked_from_outside(self, subject: Subject, tmp_path: Path) -> None:
        runs = Runs(subject, tmp_path)
        begun: list[int] = []
        outcome = runs.run(in_batch=lambda batch, _: begun.append(batch), stop=lambda: len(begun) >= 6)
        assert (outcome.batches, outcome.stopped) == (6, True)
        assert (runs.training, runs.saved, runs.validations) == (list(range(1, 7)), [6], [])

    def test_stops_early_when_the_users_code_asks(self, subject: Subject, tmp_path: Path) -> None:
        runs = Runs(subject, tmp_path)
        outcome = runs.run(in_batch=lambda batch, context: context.set_stop_requested(batch == 7))
        assert (outcome.batches, runs.training, runs.saved) == (7, list(range(1, 8)), [7])

    def test_resumes_exactly_from_anywhere(self, subject: Subject, tmp_path: Path) -> None:
        config = {"min_validation_period": {"batches": 4}, "checkpoint_policy": "all"}
        whole = Runs(subject, tmp_path / "whole", config)
        whole.run()
        assert whole.saved == [4, 8, 12, BATCHES]  # after each validation
        parts = Runs(subject, tmp_path / "parts", config)
        for end in (5, 11):  # at the end of an epoch, in the last one
            begun: list[int] = []
            resume = parts.last() if parts.saved else None
            parts.run(in_batch=lambda batch, _, begun=begun: begun.append(batch), stop=_at(begun, end), resume=resume)
        parts.run(resume=parts.last())
        assert parts.saved == [4, 5, 8, 11, 12, BATCHES]
        assert parts.state() == whole.state()
        assert parts.reporter.training_rows == whole.reporter.training_rows
        assert parts.reporter.validation_rows == whole.reporter.validation_rows
        # Started once more, what has ended trains no more.
        assert parts.run(resume=parts.last()).batches == BATCHES
        assert (parts.training, parts.saved[-1]) == (whole.training, BATCHES)

    def test_an_error_of_the_users_code_comes_out_as_it_is(self, subject: Subject, tmp_path: Path) -> None:
        error = UsersError("in batch 6")

        def fail(batch: int, _: TrialContext) -> None:
            if batch == 6:
                raise error

        runs = Runs(subject, tmp_path, {"min_checkpoint_period": {"batches": 2}})
        with pytest.raises(UsersError) as caught:
            runs.run(in_batch=fail)
        assert caught.value is error
        assert (runs.training, runs.saved) == ([1, 2, 3, 4, 5], [2, 4])


def _at(begun: list[int], end: int) -> Callable[[], bool]:
    return lambda: bool(begun) and begun[-1] >= end
