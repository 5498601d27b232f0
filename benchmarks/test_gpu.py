"""On a GPU: what a batch costs over a bare loop, and how long training waits for a checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as distributed
import torch.distributed.checkpoint as torch_checkpoint
from det_harness.frameworks.torch.host_copy import HostMemory
from timed_trials import per_batch
from tiny import Clock, InMemory, as_fetched
from torch import nn

from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

BATCHES = 1500
WIDTH = 1024


def _layers() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, WIDTH),
        *(part for _ in range(8) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())),
        nn.Linear(WIDTH, 10),
    )


def _dataset(records: int = 64 * 256) -> InMemory:
    return InMemory(torch.randn(records, 64), torch.randint(10, (records,)))


def _loader(records: int = 64 * 256) -> DataLoader:
    return DataLoader(_dataset(records), batch_size=256, shuffle=True, collate_fn=as_fetched, pin_memory=True)


class DeepTrial(PyTorchTrial):
    """Ten layers of 1024 on batches of 256, some 2 ms a step; the loss is kept every batch."""

    @staticmethod
    def tick() -> None:
        """Take the time: a batch begins."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(_layers())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    def build_training_data_loader(self) -> DataLoader:
        return _loader()

    def build_validation_data_loader(self) -> DataLoader:
        return _loader(256)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.tick()
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.model(inputs), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        inputs, labels = batch
        return {"val_loss": nn.functional.cross_entropy(self.model(inputs), labels)}


def _bare() -> float:
    loader = _loader().get_data_loader(repeat=True)
    model = _layers().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock = Clock()
    for _, (inputs, labels) in zip(range(BATCHES), loader, strict=False):
        clock.tick()
        inputs, labels = inputs.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return clock.per_batch


def test_batch(paired: Any, tmp_path: Path) -> None:
    what = "a batch of a PyTorchTrial on the GPU, its loss kept, over a bare loop that keeps none"
    paired(
        what,
        lambda: per_batch(tmp_path, DeepTrial, BATCHES, 256),
        _bare,
        goal=1.05,
        rounds=7,
        value=lambda seconds, _: float(seconds),
    )


def _state() -> dict[str, Any]:
    return {"models_state_dict": [{str(index): torch.rand(1 << 22, device="cuda") for index in range(30)}]}


def _waited(run: Callable[[], None]) -> Callable[[], None]:
    def timed() -> None:
        torch.cuda.synchronize()
        run()

    return timed


def test_blocked(paired: Any) -> None:
    state, memory = _state(), HostMemory()
    tensors = list(state["models_state_dict"][0].values())
    buffers = [torch.empty(1 << 22, pin_memory=True) for _ in tensors]

    def ours() -> None:
        _, lent = memory.copy(state)
        memory.give_back(lent)

    def peer() -> None:
        for buffer, tensor in zip(buffers, tensors, strict=True):
            buffer.copy_(tensor, non_blocking=True)
        torch.cuda.synchronize()

    what = "training waits for a checkpoint of 503 MB on the GPU, over a copy into page-locked memory"
    paired(what, _waited(ours), _waited(peer), goal=1.15, rounds=15)


def test_blocked_over_torch(paired: Any) -> None:
    state, memory = _state(), HostMemory()
    distributed.init_process_group("cpu:gloo,cuda:nccl", store=distributed.HashStore(), rank=0, world_size=1)

    def ours() -> None:
        _, lent = memory.copy(state)
        memory.give_back(lent)

    writing: list[Any] = []

    def wait() -> None:
        while writing:
            writing.pop().result()

    def peer() -> None:
        writing.append(torch_checkpoint.async_save(state, checkpoint_id=tempfile.mkdtemp(dir="/tmp")))

    try:
        what = "training waits for a checkpoint of 503 MB on the GPU, over torch.distributed.checkpoint.async_save"
        paired(what, _waited(ours), _waited(peer), goal=0.8, rounds=7, before=wait)
        wait()
    finally:
        distributed.destroy_process_group()
