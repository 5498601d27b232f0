"""The ways to a context of the Core API, behind one face: a worker's services, a script that a master records, nobody.

What a door has is read back from where it went: the reports of a worker, the handle of the recorded experiment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from det_harness.core.context import core_context
from det_harness.logged.deaf import DeafRecorder
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.divergence import LossWatch
from det_harness.trial.report import SpoolReporter
from det_harness.trial.schedule import Periods, Schedule
from det_harness.trial.services import Services
from det_harness.trial.spool import Spool

import det_native as det
from det_native.core import Context
from det_native.experimental import core_v2
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.numbers import words
from det_native.schema.rest import CheckpointDeletedReport, CheckpointReport, MetricsReport, ReportsAccepted
from det_native.schema.states import CheckpointState
from det_native.storage.checkpoints import CheckpointStorage

KINDS = ("training", "validation", "logged")


class Door(Protocol):
    """A context, and what has arrived of it once it is closed."""

    context: Context

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the rows of metrics of a kind, what is not finite as text."""

    def checkpoints(self) -> list[tuple[str, int]]:
        """Return the checkpoints that are there: ids and steps."""


class Reports:
    """Takes the reports of a worker, and merges rows of one batch as the master does."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.stop = False

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Take them."""
        self.all += [json.loads(report) for report in reports]
        return ReportsAccepted(through=len(self.all), stop=self.stop)

    def best(self) -> float | None:
        """Return None: the worker knows its own."""
        return None

    def of(self, kind: str) -> list[Any]:
        """Return the reports of a type."""
        return [report for report in self.all if report["type"] == kind]


class WorkerDoor:
    """A context on services as a worker makes them, in this process."""

    def __init__(
        self,
        folder: Path,
        *,
        config: dict[str, Any] | None = None,
        stage: dict[str, int] | None = None,
        resume: CheckpointManifest | None = None,
        **arguments: Any,
    ) -> None:
        self.reports = Reports()
        config = {"searcher": {"name": "single", "metric": "loss"}} if config is None else config
        self.environment = environment = TrialEnvironment(config=config, hparams={"lr": 0.1}, stage=stage)
        self.reporter = SpoolReporter(self.reports, Spool(folder / "spool"), metric=environment.metric, interval=0.01)
        self.schedule = Schedule(Periods(length=UNTOLD.units))
        checkpoints = TrialCheckpoints(
            CheckpointStorage(str(folder / "checkpoints")),
            CheckpointOwner(framework="core", hparams={}, trial_id=1, experiment_id=1),
            self.reporter,
            resume=resume,
            on_start=lambda batch, notice: self.reporter.started(batch, None, notice),
        )
        self.services = Services(
            environment=environment,
            schedule=self.schedule,
            reporter=LossWatch(self.reporter, environment),
            checkpoints=checkpoints,
            stop_requested=lambda: self.reporter.stop_requested,
            tensorboard=folder / "tensorboard",
            recorder=DeafRecorder(),
        )
        self.context = core_context(self.services, None, on_close=self._closed, **arguments)

    def _closed(self, error: BaseException | None) -> None:
        self.error = error
        self.reporter.close()

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the rows of metrics of a kind."""
        found: dict[int, dict[str, Any]] = {}
        for sent in self.reports.of("metrics"):
            report = MetricsReport.model_validate(sent)
            assert report.batches == sorted(set(report.batches)), "a master refuses this report"
            if report.kind == kind:
                for place, batch in enumerate(report.batches):
                    found.setdefault(batch, {"batch": batch}).update(words(report.row(place)))
        assert list(found) == sorted(found), "a master leaves these rows out"
        return list(found.values())

    def checkpoints(self) -> list[tuple[str, int]]:
        """Return the checkpoints that are there."""
        kept = [CheckpointReport.model_validate(report).manifest for report in self.reports.of("checkpoint")]
        deleted = {CheckpointDeletedReport.model_validate(one).uuid for one in self.reports.of("checkpoint_deleted")}
        return [(manifest.uuid, manifest.batch) for manifest in kept if manifest.uuid not in deleted]


class RecordedDoor:
    """A script's own context, which a master records."""

    def __init__(self, **said: Any) -> None:
        said.setdefault("searcher", {"metric": "loss"})
        self.context = core_v2.init_context(defaults=core_v2.DefaultConfig(**said))
        self.info = det.get_cluster_info()

    @property
    def experiment(self) -> det.Experiment:
        """What the master has of it."""
        assert self.info is not None
        return det.experiment(self.info.trial.experiment_id)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the rows of metrics of a kind."""
        self.experiment.wait()
        found: list[dict[str, Any]] = words(self.experiment.trials[0].metrics(kind))
        return found

    def checkpoints(self) -> list[tuple[str, int]]:
        """Return the checkpoints that are there."""
        self.experiment.wait()
        kept = (one for one in self.experiment.trials[0].checkpoints if one.state == CheckpointState.COMPLETED)
        return [(one.uuid, one.batch) for one in kept]
