"""One run of a loop of the Core API by its controller, with all services real: begun, stopped, continued."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from det_harness.frameworks.core.loop import CoreLoopController
from det_harness.program.runner import ProgramStop
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter

from det_native.core.native import CoreNativeContext
from det_native.schema.environment import TrialEnvironment
from det_native.schema.loading import load_config
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage


class CoreRunOfTest:
    """A context of a worker's, and one run of a program with it.

    Parameters
    ----------
    folder : Path
        For the checkpoints.
    resume : CheckpointManifest, optional
        Where to go on.
    length : dict
        Of the trial, as the configuration has it.
    stage : dict, optional
        How far a search wants it.
    asks_from : int
        The question for a stop to which the master begins to say yes; 0 for never.
    saves_each : int
        Epochs between two checkpoints; 0 leaves it to the loop.
    searcher
        Further fields of the searcher.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resume: CheckpointManifest | None = None,
        length: dict[str, int] | None = None,
        stage: dict[str, int] | None = None,
        asks_from: int = 0,
        saves_each: int = 0,
        **searcher: Any,
    ) -> None:
        written: dict[str, Any] = {
            "hyperparameters": {"global_batch_size": 1},
            "records_per_epoch": 1,
            "searcher": {"name": "single", "metric": "loss", "max_length": length or {"epochs": 4}, **searcher},
            "checkpoint_policy": "none",
            "min_checkpoint_period": {"epochs": saves_each},
        }
        config = load_config(written, local=True, framework="core").model_dump(mode="json")
        self.environment = TrialEnvironment(
            config=config, hparams={"global_batch_size": 1}, trial_seed=5, stage=stage or {}
        )
        self.reporter = RowsReporter("loss")
        asked = itertools.count(1)
        self.services = Services(
            environment=self.environment,
            schedule=Schedule(periods_of(self.environment)),
            reporter=self.reporter,
            checkpoints=TrialCheckpoints(
                CheckpointStorage(str(folder)), CheckpointOwner("core", {}), self.reporter, resume=resume
            ),
            stop_requested=lambda: 0 < asks_from <= next(asked),
        )
        self.controller: Any = None
        self.context = CoreNativeContext(
            self.environment, on_train=lambda call: lambda: self._begin(call), role="worker", length_of=lambda call: 4
        )

    def _begin(self, call: Any) -> Iterator[Any]:
        self.controller = CoreLoopController(call, self.services)
        yield from self.controller.batches()
        raise ProgramStop

    def run(self, program: Callable[[Any], Any]) -> CoreRunOfTest:
        """Run a program to the end of its training."""
        np.random.seed(3)
        with contextlib.suppress(ProgramStop):
            program(self.context)
        return self

    @property
    def outcome(self) -> Any:
        return self.controller.outcome

    @property
    def last(self) -> CheckpointManifest:
        manifest: CheckpointManifest = self.reporter.checkpoints[-1][1]
        return manifest

    def training(self, name: str) -> list[tuple[int, float | None]]:
        """Return the rows of a metric: the batch, and its value."""
        return [(row.batch, row.metrics[name]) for row in self.reporter.training_rows if name in row.metrics]

    def validations(self, name: str) -> list[tuple[int, Any]]:
        """Return the same of validations."""
        return [(row.batch, row.metrics[name]) for row in self.reporter.validation_rows if name in row.metrics]
