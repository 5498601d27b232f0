"""Trials whose models are sharded over two slots, and what they are compared with."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any

import pytest
import torch
from digits_trials import Digits
from measured_trials import Measured
from rank_trials import PlainTrial, Random, Scaled, TwoLosses, classified, clip
from torch import nn
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.fsdp import FSDPModule
from torch.utils import data as torch_data

from det_native.pytorch import DataLoader, LRScheduler, PyTorchCallback, PyTorchTrialContext

__all__ = ["Measured", "PlainTrial", "Random", "Scaled", "TwoLosses"]


class Sharded(PlainTrial):
    """AdamW, a schedule, clipping; an output smaller than there are slots; validation in three batches."""

    validation_size = 30

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        made = self.make_model()
        self.model: Any = context.wrap_model(made)
        assert self.model is made
        self.other = context.wrap_model(nn.Linear(10, 1))
        parameters = [*self.model.parameters(), *self.other.parameters()]
        self.optimizer = context.wrap_optimizer(torch.optim.AdamW(parameters, lr=0.002))
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.8), LRScheduler.StepMode.STEP_EVERY_EPOCH
        )
        self.drawn: list[float] = []
        self.evaluations = 0

    def make_model(self) -> nn.Module:
        return Blocks()

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(torch_data.Subset(Digits(False), range(75)), batch_size=self.validation_size)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = self.loss(images, labels)
        self.context.backward(loss)
        self.held = sum(getattr(one, "_local_tensor", one).numel() for one in self.model.parameters())
        self.context.step_optimizer(self.optimizer, clip_grads=clip)
        return {"loss": loss}

    def loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        output = self.model(images)
        return classified(output, labels) + self.other(output).pow(2).mean() + self.model.own_method()

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        self.evaluations += 1
        images, labels = batch
        return {"loss": self.loss(images, labels), "records": len(labels)}


class Blocks(nn.Module):
    """Blocks in a list, and a head that shares its weights with the first layer of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 48)
        self.blocks = nn.ModuleList([Block(48), Block(48)])
        self.back = nn.Linear(48, 48, bias=False)
        self.tied = nn.Linear(48, 48, bias=False)
        self.tied.weight = self.back.weight
        self.last = nn.Linear(48, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found = self.first(images)
        for block in self.blocks:
            found = found + block(found)
        return self.last(self.tied(self.back(found)))

    def own_method(self) -> float:
        return 0.5


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, found: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(found).relu())


class WrittenLate(Sharded):
    """What the slots have of a checkpoint is written only when they have trained on."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.went_on = threading.Event()
        self.overtaken = 0
        self.write_data = FileSystemWriter.write_data
        FileSystemWriter.write_data = lambda *arguments: self.write(*arguments)

    def write(self, *arguments: Any) -> Any:
        self.overtaken += self.went_on.wait(20)
        return self.write_data(*arguments)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 7:  # three batches after the checkpoint
            self.went_on.set()
        return super().train_batch(batch, epoch_idx, batch_idx)

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"end": PutsBack(self)}


class PutsBack(PyTorchCallback):
    def __init__(self, trial: WrittenLate) -> None:
        self.trial = trial

    def on_trial_shutdown(self) -> None:
        FileSystemWriter.write_data = self.trial.write_data


class DiskFull(WrittenLate):
    """The second slot cannot write what it has."""

    def write(self, *arguments: Any) -> Any:
        if self.context.distributed.get_rank():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.write_data(*arguments)


class OneBatch(Sharded):
    """All validation data in one batch, which only one slot has."""

    validation_size = 75


class EvenMeasured(Measured):
    """Reducers where the slots have unequal numbers of validation batches."""

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(torch_data.Subset(Digits(False), range(75)), batch_size=30)


class WholeSet(Sharded):
    """Evaluates the whole data set at once."""

    evaluate_batch = PlainTrial.__mro__[1].evaluate_batch

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        self.evaluations += 1
        losses = [self.loss(images, labels) * len(labels) for images, labels in data_loader]
        return {"loss": sum(losses) / 75, "records": 75}


class LooksTwice(Sharded):
    """A forward without gradients between backward and step: what it gathers must not be what the next batch uses."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = self.loss(images, labels)
        self.context.backward(loss)
        with torch.no_grad():
            again = self.loss(images, labels)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss, "again": again}


class TooEarly(PlainTrial):
    """The optimizer is made of parameters that wrap_model() replaces."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        model = self.make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model = context.wrap_model(model)
        self.optimizer = context.wrap_optimizer(optimizer)


class OlderTorch(PlainTrial):
    """As with a torch that cannot make means of gradients on CPUs."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(FSDPModule, "set_force_sum_reduction_for_comms")
            super().__init__(context)


class ScalarParameter(PlainTrial):
    def make_model(self) -> nn.Module:
        model = nn.Linear(64, 10)
        model.temperature = nn.Parameter(torch.tensor(1.0))
        return model


class Unlike(PlainTrial):
    def make_model(self) -> nn.Module:
        return nn.Linear(64, 10 + self.context.distributed.get_rank())


class CommonWeights(PlainTrial):
    """Two models with a parameter in common, which is replaced in the first."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        first, second = nn.Linear(64, 10), nn.Sequential(nn.Linear(64, 10))
        second[0].weight = first.weight
        self.model = context.wrap_model(first)
        self.other = context.wrap_model(second)


class HalfModels(PlainTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        context.configure_apex_amp(self.model, self.optimizer, opt_level="O2")


class HalfBatches(Sharded):
    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        context.configure_apex_amp(context.models, self.optimizer, opt_level="O1")
