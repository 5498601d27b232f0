"""Scripts that tests send: they train by the Core API, and some wait for the test at a gate."""

from __future__ import annotations

from collections.abc import Callable

from det_native.client.handles import Experiment

Submit = Callable[..., Experiment]

SEARCHER = {"name": "single", "metric": "val_loss", "max_length": {"batches": 12}}

GATE = """
import os, socket


def gate(port, text=""):
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"{os.getpid()} {text}\\n".encode())
        line.recv(1)

"""

# A loop whose loss depends on all batches before: it goes on with the same numbers only from its own state.
LOOP = (
    GATE
    + """
import json, sys
from pathlib import Path
import determined as det

stop, port, length = (int(word) for word in sys.argv[1:4])
info = det.get_cluster_info()
hparams, latest = info.trial.hparams, info.latest_checkpoint
with det.core.init() as context:
    state = {"batch": 0, "value": 1.0}
    if latest is not None:
        with context.checkpoint.restore_path(latest) as path:
            state = json.loads((Path(path) / "state.json").read_text())
    print("begins at", state["batch"])
    while state["batch"] < length:
        if state["batch"] == stop and latest is None:
            gate(port)
        state["batch"] += 1
        state["value"] = state["value"] * hparams.get("factor", 0.5) + state["batch"] / 7
        context.train.report_training_metrics(state["batch"], {"loss": state["value"]})
        stops = context.preempt.should_preempt()
        if state["batch"] % 4 == 0 or stops:
            context.train.report_validation_metrics(state["batch"], {"val_loss": state["value"]})
            with context.checkpoint.store_path({"steps_completed": state["batch"]}) as (path, uuid):
                (Path(path) / "state.json").write_text(json.dumps(state))
        if stops:
            print("stops at", state["batch"])
            break
"""
)

# Two processes train a model together, by DistributedDataParallel.
DDP = """
import os
import torch
import torch.distributed as distributed
import determined as det

distributed.init_process_group("gloo")
processes = det.core.DistributedContext.from_torch_distributed()
rank, size = processes.rank, processes.size
print(f"process {rank} of {size} with {os.environ.get('OMP_NUM_THREADS')} threads")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.arange(8.0).reshape(8, 1)[rank::size] / 8
with det.core.init(distributed=processes) as context:
    for batch in range(1, 6):
        optimizer.zero_grad()
        loss = ((model(inputs) - 3 * inputs) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses = context.distributed.gather(loss.item())
        assert not context.preempt.should_preempt()
        if rank == 0:
            context.train.report_training_metrics(batch, {"loss": sum(losses) / size})
    if rank == 0:
        context.train.report_validation_metrics(5, {"val_loss": sum(losses) / size})
    with context.checkpoint.store_path({"steps_completed": 5}, shard=True) as (path, uuid):
        (path / f"rank{rank}").write_text(str(rank))
distributed.destroy_process_group()
"""
