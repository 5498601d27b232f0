"""Trains one trial twice: with its gradients exchanged by NCCL in a group of one, and alone.

NCCL wants a GPU for each process. Started as ``python nccl_program.py <folder> <ddp or fsdp>``; see `test_gpu_ranks`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from det_harness.controllers import torch as controller
from det_harness.exchange import Exchange, GroupExchange
from det_harness.gradients.group import GroupGradients
from det_harness.gradients.sharded import ShardedGradients
from det_harness.gradients.wire import GroupWire
from det_harness.waits import Waits
from rank_program import CaseRun
from rank_trials import PlainTrial

from det_native.pytorch.gradients import Gradients

_MADE_BY = {
    "ddp": lambda exchange, owner: GroupGradients(1, GroupWire(exchange)),
    "fsdp": lambda exchange, owner: ShardedGradients(exchange, owner, []),
}


def trained(folder: Path, exchange: Exchange | None = None) -> list[dict[str, Any]]:
    """Train on eight batches; return the models' states."""
    run = CaseRun(folder, exchange)
    run.run(PlainTrial)
    models: list[dict[str, Any]] = run.result()["models"]
    return models


def main(folder: Path, strategy: str) -> None:
    """Train twice, and write what came of it."""
    alone = trained(folder / "alone")
    store = distributed.HashStore()
    distributed.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
    exchange = GroupExchange(0, 1, b"secret", Waits(store, 0, 1, None))

    def made(_: Exchange, config: dict[str, Any], owner: str) -> Gradients:
        return _MADE_BY[strategy](exchange, owner)

    controller.gradients_of = made  # type: ignore[assignment]  # which would find that there is nobody to exchange with
    torch.save((trained(folder / "nccl", exchange), alone), folder / "models.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
