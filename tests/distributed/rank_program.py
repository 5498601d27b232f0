"""One process of a trial on several slots: runs the cases that it is told, and writes what came of each to a file.

Started as ``python rank_program.py <specification.json> <rank>``; see `rank_rig`.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rank_trials
import torch
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.program.calls import ProgramSource
from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.ranks.gang import ranks_of
from det_harness.ranks.group import joined
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from digits_trials import config
from rows_reporter import RowsReporter
from two_machines import enter

from det_native.errors import DetError
from det_native.pytorch import PyTorchTrial
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.manifests import CheckpointManifest, Program
from det_native.storage.checkpoints import CheckpointStorage

# That of this process, where it is one on several machines.
place: Ranks | None = None


class CaseRun:
    """Runs a trial class with all services real, from scratch or from a checkpoint.

    Parameters
    ----------
    folder : Path
        For the checkpoints.
    communicator : Communicator
    batches, batch_size : int
        Of the trial; the batch size is the global one.
    """

    def __init__(
        self,
        folder: Path,
        communicator: Communicator | None = None,
        *,
        batches: int = 8,
        batch_size: int = 32,
        hparams: dict[str, Any] | None = None,
        **changed: Any,
    ) -> None:
        self.communicator = communicator or OneProcess()
        size = self.communicator.size
        self.environment = TrialEnvironment(
            config=config(batches, resources={"slots_per_trial": size}, **changed),
            hparams={"global_batch_size": batch_size, **(hparams or {})},
            trial_seed=5,
            ranks=place or Ranks(self.communicator.rank, size, self.communicator.rank, size),
        )
        self.storage = CheckpointStorage(str(folder))
        self.reporter = RowsReporter("loss")
        self.trial: Any = None
        self.batches = 0

    def run(
        self,
        trial_class: type[PyTorchTrial],
        resume: CheckpointManifest | None = None,
        stop_at: int | None = None,
    ) -> None:
        run = self

        class Kept(trial_class):  # type: ignore[valid-type, misc]
            def __init__(self, context: Any) -> None:
                run.trial = self
                super().__init__(context)

            def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
                run.batches = batch_idx + 1
                return super().train_batch(batch, epoch_idx, batch_idx)

        Kept.__name__ = trial_class.__name__
        services = Services(
            environment=self.environment,
            schedule=Schedule(periods_of(self.environment)),
            reporter=self.reporter,
            checkpoints=TrialCheckpoints(
                self.storage, CheckpointOwner("torch", self.environment.hparams), self.reporter, resume=resume
            ),
            stop_requested=lambda: stop_at is not None and run.batches >= stop_at,
            communicator=self.communicator,
        )
        PyTorchTrialController(Kept, services).run()

    def result(self) -> dict[str, Any]:
        """Return what is compared: weights, buffers, rows of metrics."""
        context = self.trial.context
        return {
            "batches": self.batches,
            "models": [whole(dict(model.state_dict())) for model in context.models],
            "optimizers": [whole(optimizer.state_dict()) for optimizer in context.optimizers],
            "training": [(row.batch, row.metrics) for row in self.reporter.training_rows],
            "validation": [(row.batch, row.metrics) for row in self.reporter.validation_rows],
            "checkpoints": [manifest.batch for _, manifest in self.reporter.checkpoints],
            "facts": {
                name: value
                for name, value in vars(self.trial).items()
                if isinstance(value, int | float | str | list) and name != "context"
            },
            "place": _place(context),
        }


def whole(value: Any) -> Any:
    """Return a nesting with sharded tensors made whole; a collective call."""
    if isinstance(value, dict):
        return {key: whole(part) for key, part in value.items()}
    if isinstance(value, list):
        return [whole(part) for part in value]
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def trial_of(case: dict[str, Any]) -> Any:
    """Return the trial class that a case names."""
    return getattr(importlib.import_module(case.get("module", "rank_trials")), case["trial"])


def _place(context: Any) -> dict[str, int]:
    distributed = context.distributed
    return {
        "rank": distributed.get_rank(),
        "size": distributed.get_size(),
        "local_rank": distributed.get_local_rank(),
        "agents": distributed.get_num_agents(),
        "per_slot": context.get_per_slot_batch_size(),
        "global": context.get_global_batch_size(),
    }


def train(folder: Path, communicator: Communicator, case: dict[str, Any]) -> dict[str, Any]:
    """Train a trial class, once."""
    run = CaseRun(folder, communicator, **case.get("made", {}))
    try:
        run.run(trial_of(case))
    except DetError as error:
        if not case.get("fails"):
            raise
        return {"error": type(error).__name__, "text": str(error), "batches": run.batches}
    return run.result()


def resumed(folder: Path, communicator: Communicator, case: dict[str, Any]) -> dict[str, Any]:
    """Train a trial class whole, then in two parts; only the first slot is told to stop."""
    trial_class = trial_of(case)
    undisturbed = CaseRun(folder / "whole", communicator, **case["made"])
    undisturbed.run(trial_class)
    parts = CaseRun(folder / "parts", communicator, **case["made"])
    parts.run(trial_class, stop_at=case["stop"] if communicator.rank == 0 else None)
    stopped = parts.batches
    last = communicator.broadcast_object(parts.reporter.checkpoints[-1][1] if communicator.rank == 0 else None)
    drawn = parts.trial.drawn
    torch.manual_seed(99)
    parts.run(trial_class, resume=last)
    parts.trial.drawn = drawn + parts.trial.drawn
    return {
        "stopped": stopped,
        "uuids": [
            manifest.uuid for _, manifest in (*undisturbed.reporter.checkpoints[-1:], *parts.reporter.checkpoints[-1:])
        ],
        "whole": undisturbed.result(),
        "parts": parts.result(),
    }


def stopped(folder: Path, communicator: Communicator, case: dict[str, Any]) -> dict[str, Any]:
    """Train until the first slot is told to stop."""
    run = CaseRun(folder, communicator, **case["made"])
    run.run(trial_of(case), stop_at=case["stop"] if communicator.rank == 0 else None)
    return run.result()


def continued(folder: Path, communicator: Communicator, case: dict[str, Any]) -> dict[str, Any]:
    """Train on from the only checkpoint of another folder."""
    run = CaseRun(folder, communicator, **case["made"])
    run.storage = CheckpointStorage(case["checkpoints"])
    manifests = run.storage.list()
    run.run(trial_of(case), resume=communicator.broadcast_object(manifests[0]))
    return run.result()


def wrapped_by_hand(folder: Path, communicator: Communicator, case: dict[str, Any]) -> dict[str, Any]:
    """Train the model of a trial class with torch's DistributedDataParallel, in a loop written by hand."""
    made = CaseRun(folder, communicator, **case.get("made", {}))
    from det_native.pytorch import PyTorchTrialContext

    torch.manual_seed(5)
    context = PyTorchTrialContext(made.environment)
    trial = trial_of(case)(context)
    loader = trial.build_training_data_loader().get_data_loader(
        repeat=True, num_replicas=communicator.size, rank=communicator.rank, seed=5
    )
    model = torch.nn.parallel.DistributedDataParallel(trial.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _, batch in zip(range(8), loader, strict=False):
        images, labels = context.to_device(batch)
        rank_trials.classified(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    return {"models": [dict(trial.model.state_dict())]}


_KINDS: dict[str, Callable[[Path, Communicator, dict[str, Any]], dict[str, Any]]] = {
    "train": train,
    "resumed": resumed,
    "stopped": stopped,
    "continued": continued,
    "by_hand": wrapped_by_hand,
}


def main(specification: Path, rank: int) -> None:
    """Run all cases in one process group."""
    global place
    told = json.loads(specification.read_text())
    folder = specification.parent
    size = told["size"]
    gang = Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "meeting"))
    if "gangs" in told:
        gang = Gang.model_validate(told["gangs"][rank])
        place = ranks_of(gang)
        enter(*told["machines"][rank])
    backend = {"distributed": {"backend": told["backend"]}}
    source = ProgramSource(Program(kind="script", framework="torch", command=("train.py",)), Path(__file__).parent)
    waits = {"deadline": told["deadline"], "long_seconds": told["long_seconds"]}
    with joined(gang, config=backend, source=source, **waits) as communicator:
        rank_trials.exchanges.watch(told["backend"])
        for name, case in told["cases"].items():
            if told["backend"] != "torch":
                case = {**case, "made": {**case.get("made", {}), **backend}}
            found = _KINDS[case.get("kind", "train")](folder / name, communicator, case)
            torch.save(found, folder / f"{name}.{rank}.pt")


if __name__ == "__main__":
    own = int(sys.argv[2])
    try:
        main(Path(sys.argv[1]), own)
    except DetError as error:
        traceback.print_exc()
        (Path(sys.argv[1]).parent / f"error.{own}.json").write_text(json.dumps([type(error).__name__, str(error)]))
        sys.exit(3)
