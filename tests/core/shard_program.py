"""One process of several that share checkpoints by the Core API.

Started as ``python shard_program.py <how> <folder> <rank> <size>``; it leaves what came of it in ``<rank>.json``.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

from det_native import core


def joined(how: str, rank: int, size: int, port: int) -> core.DistributedContext:
    """Join the other processes."""
    if how == "own":
        return core.DistributedContext(
            rank=rank,
            size=size,
            local_rank=rank,
            local_size=size,
            cross_rank=0,
            cross_size=1,
            port_offset=port - 12360,
        )
    if how == "machines":  # as if each process were on a machine of its own
        return core.DistributedContext(
            rank=rank,
            size=size,
            local_rank=0,
            local_size=1,
            cross_rank=rank,
            cross_size=size,
            chief_ip="127.0.0.1",
            port_offset=port - 12360,
        )
    import torch.distributed as distributed

    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    if how == "deepspeed":
        package, comm = types.ModuleType("deepspeed"), types.ModuleType("deepspeed.comm")
        comm.is_initialized = distributed.is_initialized  # type: ignore[attr-defined]
        sys.modules |= {"deepspeed": package, "deepspeed.comm": comm}
        return core.DistributedContext.from_deepspeed()
    if how == "horovod":
        from det_harness.ranks.torch_communicator import TorchCommunicator

        exchange = TorchCommunicator(rank, size, b"")
        hvd = types.SimpleNamespace(
            rank=lambda: rank,
            size=lambda: size,
            is_initialized=lambda: True,
            allgather_object=exchange.all_gather_object,
            broadcast_object=lambda value, root_rank=0: exchange.broadcast_object(value),
        )
        return core.DistributedContext.from_horovod(hvd)
    return core.DistributedContext.from_torch_distributed()


def exchanged(context: core.Context) -> dict[str, Any]:
    """Call what exchanges values."""
    distributed = context.distributed
    rank = distributed.rank
    return {
        "place": [distributed.get_rank(), distributed.get_size(), distributed.get_local_rank()],
        "machines": [distributed.get_num_agents(), distributed.cross_rank],
        "allgather": distributed.allgather(rank),
        "gather": distributed.gather(rank),
        "broadcast": distributed.broadcast(f"of {rank}"),
        "allgather_local": distributed.allgather_local(rank),
        "gather_local": distributed.gather_local(rank),
        "broadcast_local": distributed.broadcast_local(f"of {rank}"),
    }


def saved(context: core.Context, folder: Path) -> dict[str, Any]:
    """Save and read checkpoints that each process has a part of."""
    rank, found = context.distributed.rank, {}
    own = folder / f"files-{rank}"
    own.mkdir()
    (own / f"part-{rank}").write_text(f"part of {rank}")
    (own / "common").write_text("the same")
    (own / "left out").write_text(str(rank))
    uuid = context.checkpoint.upload(
        own, {"steps_completed": 5, "parts": {str(rank): rank}}, shard=True, selector=lambda name: name != "left out"
    )
    found["metadata"] = context.checkpoint.get_metadata(uuid)
    with context.checkpoint.restore_path(uuid) as path:
        found["uploaded"] = {file.name: file.read_text() for file in sorted(path.iterdir())}
    with context.checkpoint.store_path({"steps_completed": 6}, shard=True) as (path, uuid):
        (path / f"stored-{rank}").write_text(str(rank))
    target = folder / f"target-{context.distributed.cross_rank}"
    context.checkpoint.download(uuid, target)
    found["stored"] = {file.name: file.read_text() for file in sorted(target.iterdir())}
    try:
        context.checkpoint.upload(own, shard=True, selector=lambda name: name == "left out")
    except ValueError as error:
        found["conflict"] = str(error)
    try:
        context.checkpoint.upload(own if rank else folder / "no such folder", shard=True)
    except Exception as error:  # noqa: BLE001 (looked at)
        found["missing"] = [type(error).__name__, str(error)]
    try:
        context.train.report_training_metrics(1, {"loss": 1.0})
        found["reports"] = "yes"
    except RuntimeError as error:
        found["reports"] = str(error)
    found["preempt"] = context.preempt.should_preempt()
    for operation in context.searcher.operations():
        found["length"] = operation.length
        if not rank:
            operation.report_completed(1.0)
    return found


def main(how: str, folder: Path, rank: int, size: int, port: int) -> None:
    """Be one of the processes."""
    with core.init(distributed=joined(how, rank, size, port), checkpoint_storage=str(folder / "storage")) as context:
        found = {**exchanged(context), **saved(context, folder)}
        context.distributed.close()
    (folder / f"{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("DET_HOME", sys.argv[2])
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
