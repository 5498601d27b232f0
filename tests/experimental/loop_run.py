"""One run of a loop over ``context.train()`` by its controller, with all services real: begun, stopped, continued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from det_harness.frameworks.torch.loop import TorchLoopController
from det_harness.program.runner import ProgramStop
from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from torch.utils.data import DataLoader, TensorDataset

from det_native.pytorch import LRScheduler
from det_native.pytorch.native import PyTorchNativeContext
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.loading import load_config
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

RECORDS, BATCH_SIZE = 40, 4


class _Asked:
    """What the master asks of a trial."""

    __module__ = "det_native.stand_in"  # what a loop leads to of ours is not kept as its names are

    def __init__(self) -> None:
        self.stop = False


class LoopRun:
    """A user's objects around a context of a worker's, and one run of their trial.

    The model has a buffer and draws random numbers; its rate falls with every batch.

    Parameters
    ----------
    folder : Path
        For the checkpoints.
    communicator : Communicator, optional
    resume : CheckpointManifest, optional
        Where to go on.
    epochs : int
        Of the trial, with 10 batches each on one slot, 5 on two.
    dropout : float
        The compiler draws other numbers than torch does; without any, results can be compared.
    batch_size : int
        Of each slot.
    changed
        Fields of the configuration.
    """

    def __init__(
        self,
        folder: Path,
        communicator: Communicator | None = None,
        *,
        resume: CheckpointManifest | None = None,
        epochs: int = 1,
        dropout: float = 0.2,
        batch_size: int = BATCH_SIZE,
        **changed: Any,
    ) -> None:
        self.communicator = communicator or OneProcess()
        size = self.communicator.size
        whole = {"global_batch_size": batch_size * size}
        written = {
            "hyperparameters": whole,
            "records_per_epoch": RECORDS,
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": epochs}},
            "min_validation_period": {"epochs": 1},
            "checkpoint_policy": "none",
            "resources": {"slots_per_trial": size},
        }
        config = load_config(written | changed, local=size == 1, framework="torch").model_dump(mode="json")
        self.environment = TrialEnvironment(
            config=config,
            hparams=whole,
            trial_seed=5,
            ranks=Ranks(self.communicator.rank, size, self.communicator.rank, size),
        )
        self.reporter = RowsReporter("val_loss")
        self.storage = CheckpointStorage(str(folder))
        self._asked = _Asked()
        self.services = Services(
            environment=self.environment,
            schedule=Schedule(periods_of(self.environment)),
            reporter=self.reporter,
            checkpoints=TrialCheckpoints(
                self.storage, CheckpointOwner("torch", self.environment.hparams), self.reporter, resume=resume
            ),
            stop_requested=lambda: self.stop,
            communicator=self.communicator,
        )
        self.controller: Any = None
        self._make(dropout)

    @property
    def stop(self) -> bool:
        """Whether a stop is asked for, which is no affair of the program's."""
        return self._asked.stop

    @stop.setter
    def stop(self, stop: bool) -> None:
        self._asked.stop = stop

    def _make(self, dropout: float) -> None:
        self.context = PyTorchNativeContext(
            self.environment, on_fit=lambda call: None, on_train=lambda call: lambda: self._begin(call), role="worker"
        )
        torch.manual_seed(self.environment.trial_seed)  # as init() does where the configuration has a seed
        layers = [torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(dropout), torch.nn.Linear(8, 1)]
        self.model = self.context.wrap_model(torch.nn.Sequential(*layers))
        self.optimizer = self.context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.05))
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)
        self.context.wrap_lr_scheduler(self.scheduler, LRScheduler.StepMode.STEP_EVERY_BATCH)

    def _begin(self, call: Any) -> Iterator[Any]:
        rng.seed_all(self.environment.trial_seed)
        self.controller = TorchLoopController(call, self.services)
        batches: Iterator[Any] = self.controller.batches()
        return batches

    def loader(self, *, shuffle: bool = False) -> Any:
        x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(3))
        size = self.context.get_per_slot_batch_size()
        return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=size, shuffle=shuffle)

    def loss(self, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])

    def evaluate(self, batch: Any) -> dict[str, Any]:
        return {"val_loss": self.loss(batch)}

    def batches(self, **arguments: Any) -> Iterator[Any]:
        given = {"validation_loader": self.loader(), "evaluate_batch": self.evaluate}
        return self.context.train(self.loader(shuffle=True), **(given | arguments))

    def step(self, batch: Any, *, report: bool = True) -> None:
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        if report:
            self.context.report(loss=loss)

    def train(self, stop_at: int = 0) -> None:
        """Run the loop to its end; after `stop_at` batches a stop is asked for, as a pause does."""
        for batch in self.batches():
            self.step(batch)
            self.stop = self.context.batch_idx + 1 == stop_at

    def graphs(self) -> int:
        """How many forms of models this process has compiled."""
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    def result(self) -> dict[str, Any]:
        """What is compared of runs."""
        outcome = self.controller.outcome
        return {
            "batches": self.services.schedule.progress.batches,
            "outcome": None if outcome is None else (outcome.batches, outcome.stopped),
            "model": {name: value.clone() for name, value in self.model.state_dict().items()},
            "graphs": self.graphs(),
            "rate": self.scheduler.get_last_lr(),
            "training": [(row.batch, row.metrics) for row in self.reporter.training_rows],
            "validation": [(row.batch, row.metrics) for row in self.reporter.validation_rows],
            "checkpoints": [manifest.batch for _, manifest in self.reporter.checkpoints],
        }

    def last(self) -> CheckpointManifest:
        """The checkpoint to continue from."""
        return self.reporter.checkpoints[-1][1]


__all__ = ["BATCH_SIZE", "RECORDS", "LoopRun", "ProgramStop"]
