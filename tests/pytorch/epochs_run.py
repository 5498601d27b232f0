"""One run of a loop over ``context.epochs()`` by its controller, with all services real: begun, stopped, continued."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from det_harness.frameworks.torch.epochs.controller import EpochsController
from det_harness.program.runner import ProgramStop
from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import one_of_each, periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from torch.utils.data import DataLoader, TensorDataset

from det_native.imports import load_optimizers
from det_native.pytorch.native import PyTorchNativeContext
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.loading import load_config
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

load_optimizers()  # else the first plain step leaves a folder and an environment variable

RECORDS, BATCH_SIZE = 40, 8
BATCHES = RECORDS // BATCH_SIZE


class EpochsRun:
    """A context of a worker's, and one run of a program with it.

    Parameters
    ----------
    folder : Path
        For the checkpoints.
    resume : CheckpointManifest, optional
        Where to go on.
    epochs : int
        Of the trial, as the configuration has them.
    quick : bool
        A quick check.
    stop_after : int
        Epochs after which the master asks for a stop; 0 for none.
    communicator : Communicator, optional
    changed
        Fields of the configuration.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resume: CheckpointManifest | None = None,
        epochs: int = 4,
        quick: bool = False,
        stop_after: int = 0,
        communicator: Communicator | None = None,
        **changed: Any,
    ) -> None:
        self.communicator = communicator = communicator or OneProcess()
        rank, size = communicator.rank, communicator.size
        written: dict[str, Any] = {
            "hyperparameters": {"global_batch_size": BATCH_SIZE},
            "records_per_epoch": RECORDS,
            "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": epochs}},
            "checkpoint_policy": "none",
            "resources": {"slots_per_trial": size},
        }
        config = load_config(written | changed, local=size == 1, framework="torch").model_dump(mode="json")
        self.environment = TrialEnvironment(
            config=config,
            hparams={"global_batch_size": BATCH_SIZE},
            trial_seed=5,
            ranks=Ranks(rank, size, rank, size),
        )
        self.reporter = RowsReporter("loss")
        ended = itertools.count(1)
        self.services = Services(
            environment=self.environment,
            schedule=Schedule(one_of_each() if quick else periods_of(self.environment)),
            reporter=self.reporter,
            checkpoints=TrialCheckpoints(
                CheckpointStorage(str(folder)), CheckpointOwner("torch", {}), self.reporter, resume=resume
            ),
            stop_requested=lambda: next(ended) == stop_after,
            validation_batches=1 if quick else None,
            communicator=communicator,
        )
        self.controller: Any = None
        self.context = PyTorchNativeContext(
            self.environment, on_fit=lambda call: None, on_train=lambda call: lambda: self._begin(call), role="worker"
        )

    def _begin(self, call: Any) -> Iterator[Any]:
        self.controller = EpochsController(call, self.services)
        yield from self.controller.batches()
        raise ProgramStop

    def run(self, program: Callable[[EpochsRun], Any]) -> EpochsRun:
        """Run a program to the end of its training."""
        torch.manual_seed(3)
        with contextlib.suppress(ProgramStop):
            program(self)
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


def data() -> TensorDataset:
    x = torch.randn(RECORDS, 3, generator=torch.Generator().manual_seed(3))
    return TensorDataset(x, x.sum(1, keepdim=True))


class Parts:
    """A model that draws and has a buffer, with what trains it."""

    def __init__(self) -> None:
        layers = [torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)]
        self.model: Any = torch.nn.Sequential(*layers)
        self.optimizer: Any = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.scheduler: Any = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.7)
        self.loader: Any = DataLoader(data(), batch_size=BATCH_SIZE, shuffle=True)
        self.held_out: Any = DataLoader(data(), batch_size=16)

    def wrapped(self, context: Any) -> Parts:
        self.model, self.loader, self.scheduler, self.optimizer, self.held_out = context.wrap(
            self.model, self.loader, self.scheduler, self.optimizer, self.held_out
        )
        return self

    def train(self, epoch: int = 0) -> Any:
        """Train for one pass, as people write it; return the last loss."""
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        self.scheduler.step()
        return loss

    def evaluate(self) -> float:
        self.model.eval()
        with torch.no_grad():
            losses = [torch.nn.functional.mse_loss(self.model(x), y).item() for x, y in self.held_out]
        self.model.train()
        return sum(losses) / len(losses)

    @property
    def weights(self) -> list[torch.Tensor]:
        return [value.clone() for value in self.model.state_dict().values()]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
