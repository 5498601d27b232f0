"""Trains one trial twice: with its gradients exchanged by NCCL in a group of one, and alone.

NCCL wants a GPU for each process. Started as ``python nccl_program.py <folder> <ddp or fsdp>``; see `test_gpu_ranks`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from det_harness.frameworks.torch import training
from det_harness.frameworks.torch.gradients.group import GroupGradients
from det_harness.frameworks.torch.gradients.sharded import ShardedGradients
from det_harness.frameworks.torch.gradients.wire import GroupWire
from det_harness.ranks.communicator import Communicator
from det_harness.ranks.deadlock import DeadlockDetection
from det_harness.ranks.torch_communicator import TorchCommunicator
from rank_program import CaseRun
from rank_trials import PlainTrial

from det_native.pytorch.gradients import Gradients

_MADE_BY = {
    "ddp": lambda communicator, owner: GroupGradients(1, GroupWire(communicator)),
    "fsdp": lambda communicator, owner: ShardedGradients(communicator, owner, []),
}


def trained(folder: Path, communicator: Communicator | None = None) -> list[dict[str, Any]]:
    """Train on eight batches; return the models' states."""
    run = CaseRun(folder, communicator)
    run.run(PlainTrial)
    models: list[dict[str, Any]] = run.result()["models"]
    return models


def main(folder: Path, strategy: str) -> None:
    """Train twice, and write what came of it."""
    alone = trained(folder / "alone")
    store = distributed.HashStore()
    distributed.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
    communicator = TorchCommunicator(0, 1, b"secret", DeadlockDetection(store, 0, 1, None))

    def made(_: Communicator, config: dict[str, Any], owner: str) -> Gradients:
        return _MADE_BY[strategy](communicator, owner)

    training.gradients_of = made  # type: ignore[assignment]  # which would find that there is nobody to exchange with
    torch.save((trained(folder / "nccl", communicator), alone), folder / "models.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
