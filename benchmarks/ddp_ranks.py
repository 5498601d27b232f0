"""One of two processes that train the medium model: as a trial, and by hand with DistributedDataParallel, in turn.

Started by ``test_distributed.py`` as ``python ddp_ranks.py <rank> <folder>``. Rank 0 reads commands from its input
(``ours`` or ``ddp``, the empty line ends it) and answers each with the seconds per batch.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.group import joined
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from test_batch import MediumTrial, as_fetched

from det_native.pytorch import DataLoader
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.loading import load_config
from det_native.storage.checkpoints import CheckpointStorage

BATCHES = 15
_SKIPPED = 4


class Ticks:
    """Takes the time of every batch; the middle one counts, so that a moment of another process's does not."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def tick(self) -> None:
        self._times.append(time.perf_counter())

    @property
    def per_batch(self) -> float:
        steps = [after - before for before, after in zip(self._times, self._times[1:], strict=False)]
        return statistics.median(steps[_SKIPPED:])


class Medium(MediumTrial):
    """The medium model, 16 records a batch on each slot."""

    def __init__(self, context: Any) -> None:
        torch.manual_seed(0)
        super().__init__(context)

    def build_training_data_loader(self) -> DataLoader:
        return loader_of_medium()


def loader_of_medium() -> DataLoader:
    return DataLoader(Medium.make_dataset(), batch_size=16, shuffle=True, collate_fn=as_fetched)


def ours(folder: Path, communicator: Communicator) -> float:
    """Train a trial on both slots."""
    ticks = Ticks()

    class Timed(Medium):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            ticks.tick()
            return super().train_batch(batch, epoch_idx, batch_idx)

    config = load_config(
        {
            "hyperparameters": {"global_batch_size": 32},
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": BATCHES}},
            "checkpoint_policy": "none",
            "resources": {"slots_per_trial": 2},
        }
    ).model_dump(mode="json")
    environment = TrialEnvironment(
        config=config,
        hparams={"global_batch_size": 32},
        ranks=Ranks(communicator.rank, communicator.size, communicator.rank, communicator.size),
    )
    reporter = RowsReporter("val_loss")
    services = Services(
        environment=environment,
        schedule=Schedule(periods_of(environment)),
        reporter=reporter,
        checkpoints=TrialCheckpoints(
            CheckpointStorage(str(folder / "checkpoints")), CheckpointOwner("torch", environment.hparams), reporter
        ),
        stop_requested=lambda: False,
        communicator=communicator,
    )
    PyTorchTrialController(Timed, services).run()
    return ticks.per_batch


def ddp(folder: Path, communicator: Communicator) -> float:
    """Train the same model by hand."""
    torch.manual_seed(0)
    loader = loader_of_medium().get_data_loader(repeat=True, num_replicas=communicator.size, rank=communicator.rank)
    model = torch.nn.parallel.DistributedDataParallel(Medium.make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ticks, losses = Ticks(), []
    for _, (inputs, labels) in zip(range(BATCHES), loader, strict=False):
        ticks.tick()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return ticks.per_batch


def main(rank: int, folder: Path) -> None:
    """Do what rank 0 is told, on both ranks."""
    torch.set_num_threads(1)
    gang = Gang(rank=rank, size=2, local_rank=rank, local_size=2, rendezvous=str(folder / "meeting"))
    runs = {"ours": ours, "ddp": ddp}
    with joined(gang) as communicator:
        while True:
            command = communicator.broadcast_object(sys.stdin.readline().strip() if rank == 0 else None)
            if not command:
                return
            seconds = runs[command](folder, communicator)
            if rank == 0:
                print(seconds, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
