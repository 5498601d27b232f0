"""Trials that are trained on two slots, and on one to compare with."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import torch
from digits_trials import Digits
from torch import nn
from torch.utils import data as torch_data

from det_native.pytorch import (
    DataLoader,
    LRScheduler,
    PyTorchCallback,
    PyTorchTrial,
    PyTorchTrialContext,
)


def wide_model() -> nn.Module:
    """Return a model whose gradients take two buckets: one is exchanged during backward, one after it."""
    return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 257), nn.ReLU(), nn.Linear(257, 10))


def clip(parameters: Any) -> None:
    nn.utils.clip_grad_norm_(parameters, 0.5)


def classified(output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output, labels)


class PlainTrial(PyTorchTrial):
    """The digits, without anything random in the model."""

    records = 320
    momentum = 0.9

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(self.make_model())
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=self.momentum)
        )

    def make_model(self) -> nn.Module:
        return wide_model()

    def build_training_data_loader(self) -> DataLoader:
        dataset = torch_data.Subset(Digits(True), range(self.records))
        return DataLoader(dataset, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(torch_data.Subset(Digits(False), range(75)), batch_size=20)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = classified(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        return {"loss": classified(self.model(images), labels)}


class ByHand(PlainTrial):
    """Without the context's calls."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        self.optimizer.zero_grad()
        loss = classified(self.model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return {"loss": loss}


class TwoLosses(PlainTrial):
    """Two backward passes on one forward."""

    passes = 1

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(self.make_model())
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=0.1), backward_passes_per_step=self.passes
        )

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        output = self.model(images)
        first, second = classified(output, labels), output.pow(2).mean()
        self.context.backward(first, retain_graph=True)
        self.context.backward(second)
        self.context.step_optimizer(self.optimizer)
        return {"loss": first}


class TwoLossesDeclared(TwoLosses):
    passes = 2


class Clipped(PlainTrial):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = classified(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=clip)
        return {"loss": loss}


class Half(PlainTrial):
    """Parameters in bfloat16, and so their gradients."""

    def make_model(self) -> nn.Module:
        return wide_model().to(torch.bfloat16)

    def loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return classified(self.model(images.to(torch.bfloat16)).float(), labels)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        loss = self.loss(*batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"loss": self.loss(*batch)}


class Gan(PlainTrial):
    """Two optimizers; the generator's loss leaves gradients in the discriminator, which are part of its next step."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.generator = context.wrap_model(nn.Sequential(nn.Linear(8, 600), nn.ReLU(), nn.Linear(600, 64)))
        layers = nn.Linear(64, 600), nn.ReLU(), nn.Linear(600, 500), nn.ReLU(), nn.Linear(500, 1)
        self.discriminator = context.wrap_model(nn.Sequential(*layers))
        self.of_generator = context.wrap_optimizer(torch.optim.SGD(self.generator.parameters(), lr=0.05))
        self.of_discriminator = context.wrap_optimizer(torch.optim.SGD(self.discriminator.parameters(), lr=0.05))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, _ = batch
        judged = nn.functional.binary_cross_entropy_with_logits
        fake = self.generator(images[:, :8])
        real_output, fake_output = self.discriminator(images), self.discriminator(fake.detach())
        loss = judged(real_output, torch.ones_like(real_output)) + judged(fake_output, torch.zeros_like(fake_output))
        self.context.backward(loss)
        self.context.step_optimizer(self.of_discriminator)
        output = self.discriminator(fake)
        other = judged(output, torch.ones_like(output))
        self.context.backward(other)
        self.context.step_optimizer(self.of_generator)
        return {"loss": loss, "other": other}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, _ = batch
        return {"loss": self.discriminator(images).mean()}


class Uneven(PlainTrial):
    """Seven batches of 16 records and one of 4: the slots have four and four, one of them a small one."""

    records = 116


class Unused(PlainTrial):
    """One layer is used by the second slot only, in every other batch; one is never used. Weights decay."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(wide_model())
        self.some, self.never = nn.Linear(10, 10), nn.Linear(10, 10)
        context.wrap_model(nn.ModuleList([self.some, self.never]))
        parameters = [*self.some.parameters(), *self.never.parameters(), *self.model.parameters()]
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(parameters, lr=0.1, weight_decay=0.1))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        output = self.model(images)
        if self.context.distributed.get_rank() == 1 and batch_idx % 2:
            output = self.some(output)
        loss = classified(output, labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}


class Thawing(PlainTrial):
    """The first layer is frozen for three batches; two batches later a further layer is added to the optimizer."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.late = context.wrap_model(nn.Linear(10, 10))
        self.model[0].requires_grad_(False)  # type: ignore[index]

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        self.model[0].requires_grad_(batch_idx >= 3)  # type: ignore[index]
        if batch_idx == 5:
            self.optimizer.add_param_group({"params": list(self.late.parameters()), "lr": 0.01})
        output = self.model(images)
        loss = classified(self.late(output) if batch_idx >= 5 else output, labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}


class Shared(PlainTrial):
    """Two optimizers have a layer in common."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(wide_model())
        layers: Any = self.model
        first = [*layers[0].parameters(), *layers[2].parameters()]
        second = [*layers[2].parameters(), *layers[4].parameters()]
        self.first = context.wrap_optimizer(torch.optim.SGD(first, lr=0.1))
        self.second = context.wrap_optimizer(torch.optim.SGD(second, lr=0.02))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = classified(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.second, auto_zero_grads=False)
        self.context.step_optimizer(self.first)
        self.second.zero_grad()
        return {"loss": loss}


class Scaled(PlainTrial):
    """A scaler; in the fourth batch the second slot's loss overflows (in a trial on one slot, that of the batch)."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = classified(self.model(images), labels)
        distributed = self.context.distributed
        overflows = batch_idx == 3 and distributed.get_rank() == distributed.get_size() - 1
        self.context.backward(self.scaler.scale(loss * (float("inf") if overflows else 1)))
        self.context.step_optimizer(self.optimizer, clip_grads=clip, scaler=self.scaler)
        self.scaler.update()
        return {"loss": loss, "scale": self.scaler.get_scale()}


class Normalised(PlainTrial):
    """Batch norm: what it gathers differs by slot, and the first one's counts."""

    def make_model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(64, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 10))


class Stopping(PlainTrial):
    """The second slot asks for an end in its fifth batch."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 4 and self.context.distributed.get_rank() == 1:
            self.context.set_stop_requested(True)
        return super().train_batch(batch, epoch_idx, batch_idx)


class Sparse(PlainTrial):
    """A model with sparse gradients."""

    def make_model(self) -> nn.Module:
        return nn.EmbeddingBag(64, 10, sparse=True)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        loss = classified(self.model(images.long()), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}


class Unlike(PlainTrial):
    """Another model on each slot."""

    def make_model(self) -> nn.Module:
        return nn.Linear(64, 10 + self.context.distributed.get_rank())


class Overlapping(PlainTrial):
    """Counts what is being exchanged already when backward comes to the first layer."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.begun: list[int] = []
        self.before = 0
        first: Any = self.model[0]  # type: ignore[index]
        first.weight.register_post_accumulate_grad_hook(lambda _: self.begun.append(exchanges.count - self.before))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.before = exchanges.count
        return super().train_batch(batch, epoch_idx, batch_idx)


class Exchanges:
    """Counts sums of gradients on their way."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, backend: str) -> None:
        """Count the calls of what the backend begins a sum with."""
        if backend == "horovod":
            import horovod.torch

            module, name = horovod.torch, "allreduce_async_"
        else:
            module, name = torch.distributed, "all_reduce"
        original = getattr(module, name)

        def counted(*arguments: Any, **keywords: Any) -> Any:
            self.count += 1
            return original(*arguments, **keywords)

        setattr(module, name, counted)


exchanges = Exchanges()


class Random(PlainTrial):
    """Everything that a checkpoint has to hold for every slot: draws, dropout, batch norm, reducers, a callback."""

    records = 110

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.adam = context.wrap_optimizer(torch.optim.AdamW(self.head.parameters(), lr=1e-2))
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.8), LRScheduler.StepMode.STEP_EVERY_EPOCH
        )
        self.mean = context.experimental.wrap_reducer(np.mean, name="mean", for_validation=False)
        self.drawn: list[float] = []

    def make_model(self) -> nn.Module:
        self.head = self.context.wrap_model(nn.Linear(10, 10))
        return nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 10))

    def build_training_data_loader(self) -> DataLoader:
        dataset = torch_data.Subset(Digits(True, noise=0.3), range(self.records))
        workers = self.context.get_hparams().get("workers", 0)
        return DataLoader(dataset, batch_size=self.context.get_per_slot_batch_size(), shuffle=True, num_workers=workers)

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"sums": Sums(self)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        self.seen = float(images.sum())
        self.drawn.append(random.random())
        output = self.head(self.model(images * (1 + 0.1 * self.drawn[-1])))
        loss = classified(output, labels)
        self.mean.update(loss.item())
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=clip)
        self.context.step_optimizer(self.adam)
        return {"loss": loss, "seen": self.seen}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        return {"loss": classified(self.head(self.model(images)), labels)}


class Sums(PyTorchCallback):
    """Its state differs by slot: sums of what the slot has seen, at the ends of epochs."""

    def __init__(self, trial: Random) -> None:
        self.trial = trial
        self.sums: list[float] = []

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.sums.append(self.trial.seen)

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["of_slot"] = self.trial.context.distributed.get_rank()

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        assert checkpoint["of_slot"] == self.trial.context.distributed.get_rank()

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.sums = state_dict["sums"]


class LeavesOut(PlainTrial):
    """The second slot leaves out the step of a batch, counted from 0."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == self.context.get_hparam("left_out") and self.context.distributed.get_rank() == 1:
            return {"loss": 0.0}
        return super().train_batch(batch, epoch_idx, batch_idx)


class Slow(PlainTrial):
    """The slots' batches take long in turn."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx % 2 == self.context.distributed.get_rank():
            threading.Event().wait(1.2)  # the time that it takes is what is tested
        return super().train_batch(batch, epoch_idx, batch_idx)


class Dying(PlainTrial):
    """The second slot's process ends in its third batch, by an exception or at once."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 2 and self.context.distributed.get_rank() == 1:
            if self.context.get_hparam("how") == "exception":
                raise KeyError("lost label")
            import os

            os._exit(9)
        return super().train_batch(batch, epoch_idx, batch_idx)
