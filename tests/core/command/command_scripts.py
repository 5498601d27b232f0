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
from det_harness.core.attached import attached

stop, port, length = (int(word) for word in sys.argv[1:4])
with attached() as services:
    hparams = services.environment.hparams
    with services.checkpoints.restore() as folder:
        state = {"batch": 0, "value": 1.0} if folder is None else json.loads((folder / "state.json").read_text())
    print("begins at", state["batch"], flush=True)
    while state["batch"] < length:
        if state["batch"] == stop and folder is None:
            gate(port)
        state["batch"] += 1
        state["value"] = state["value"] * hparams.get("factor", 0.5) + state["batch"] / 7
        services.reporter.training([state["batch"]], {"loss": [state["value"]]})
        stops = services.stop_requested()
        if state["batch"] % 4 == 0 or stops:
            services.reporter.validation(state["batch"], {"val_loss": state["value"]})
            services.checkpoints.save(
                state["batch"], lambda folder: (folder / "state.json").write_text(json.dumps(state)) and None
            )
            services.checkpoints.wait()
        if stops:
            print("stops at", state["batch"], flush=True)
            break
"""
)

# Two processes train a model together, by DistributedDataParallel.
DDP = """
import os
import torch
import torch.distributed as distributed
from det_harness.core.attached import attached

distributed.init_process_group("gloo")
rank, size = distributed.get_rank(), distributed.get_world_size()
print(f"process {rank} of {size} with {os.environ['OMP_NUM_THREADS']} threads")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.arange(8.0).reshape(8, 1)[rank::size] / 8
with attached() as services:
    for batch in range(1, 6):
        optimizer.zero_grad()
        loss = ((model(inputs) - 3 * inputs) ** 2).mean()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        distributed.all_reduce(mean)
        if rank == 0:
            services.reporter.training([batch], {"loss": [float(mean) / size]})
    if rank == 0:
        services.reporter.validation(5, {"val_loss": float(mean) / size})
distributed.destroy_process_group()
"""
