"""Trainings in plain torch, and the same ones with det_native; prints the losses.

Started as ``python plain_torch.py plain|local <kind> ...``.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import data

import det_native as det
from det_native.pytorch import PyTorchCallback

EPOCHS = 3


class Noisy(data.Dataset[Any]):
    """Rows that are augmented when they are read, with all of the global generators."""

    def __init__(self, augmented: bool) -> None:
        drawn = torch.Generator().manual_seed(0)
        self.x = torch.randn(90, 8, generator=drawn)
        self.y = (self.x.sum(1) > 0).long()
        self.augmented = augmented

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.augmented:
            return self.x[index], self.y[index]
        shift = 0.1 * torch.rand(1) + 0.1 * random.random() + 0.1 * float(np.random.rand())
        return self.x[index] + shift, self.y[index]


class Rows(data.IterableDataset[Any]):
    """Rows one after the other."""

    def __len__(self) -> int:
        return 90

    def __iter__(self) -> Iterator[Any]:
        rows = Noisy(False)
        return (rows[index] for index in range(90))


class Halves:
    """A batch sampler that shuffles with Python's random numbers, and keeps some of its own from pass to pass."""

    def __init__(self) -> None:
        self.own = random.Random(3)

    def __len__(self) -> int:
        return 9

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(90))
        random.shuffle(order)
        self.own.shuffle(order)
        return iter([order[first : first + 10] for first in range(0, 90, 10)])


def loaders(kind: str) -> tuple[Any, Any]:
    """Return the loaders of a kind of data, as a notebook makes them."""
    drawn = torch.Generator().manual_seed(5)
    further: dict[str, Any] = {
        "shuffled": {"batch_size": 16, "shuffle": True},
        "in order": {"batch_size": 16, "drop_last": True},
        "one generator": {"batch_size": 16, "shuffle": True, "generator": drawn},
        "weighted": {"batch_size": 16, "sampler": data.WeightedRandomSampler([1.0, 3.0] * 45, 90)},
        "with replacement": {"batch_size": 16, "sampler": data.RandomSampler(range(90), replacement=True)},
        "subset": {"batch_size": 16, "sampler": data.SubsetRandomSampler(range(0, 90, 2))},
        "own batches": {"batch_sampler": Halves()},
        "workers": {"batch_size": 16, "shuffle": True, "num_workers": 2},
        "kept workers": {"batch_size": 16, "shuffle": True, "num_workers": 2, "persistent_workers": True},
        "noisy workers": {"batch_size": 16, "shuffle": True, "num_workers": 2},
        "rows": {"batch_size": 16},
    }[kind]
    augmented = kind not in ("rows", "workers", "kept workers")
    dataset = Rows() if kind == "rows" else Noisy(augmented)
    shared = {"generator": drawn} if kind == "one generator" else {}
    validation = data.DataLoader(Noisy(augmented), 32, shuffle=kind == "shuffled", **shared)
    return data.DataLoader(dataset, **further), validation


KINDS = [
    "shuffled",
    "in order",
    "one generator",
    "weighted",
    "with replacement",
    "subset",
    "own batches",
    "workers",
    "kept workers",
    "rows",
]


def made(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return a model with dropout and its optimizer."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
    return model, torch.optim.Adam(model.parameters(), 0.01)


def plain(kind: str) -> tuple[list[float], list[float]]:
    """Train without det_native; return the losses of the batches, and of the validations."""
    model, optimizer = made(7)
    training, validation = loaders(kind)
    losses, validated = [], []
    torch.manual_seed(42)
    for _ in range(EPOCHS):
        for x, y in training:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            scores = [(nn.functional.cross_entropy(model(x), y).item(), len(x)) for x, y in validation]
        model.train()
        validated.append(float(np.average([score for score, _ in scores], weights=[size for _, size in scores])))
    return losses, validated


class Validations(PyTorchCallback):
    """Keeps what the validations found."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.losses.append(metrics["val_loss"])


def local(kind: str) -> tuple[list[float], list[float]]:
    """Train with det_native in this process; return the same."""
    context = det.experimental.pytorch.init({"hyperparameters": {}}, local=True, show="none")
    model, optimizer = made(7)
    model, optimizer = context.wrap_model(model), context.wrap_optimizer(optimizer)
    training, validation = loaders(kind)

    def evaluate_batch(batch: Any) -> dict[str, Any]:
        return {"val_loss": nn.functional.cross_entropy(model(batch[0]), batch[1])}

    losses, validations = [], Validations()
    torch.manual_seed(42)
    given = {"validation_loader": validation, "evaluate_batch": evaluate_batch, "callbacks": validations}
    for x, y in context.train(training, epochs=EPOCHS, **given):
        loss = nn.functional.cross_entropy(model(x), y)
        context.backward(loss)
        context.step_optimizer(optimizer)
        context.report(loss=loss)
        losses.append(loss.item())
    return losses, validations.losses


if __name__ == "__main__":
    torch.set_num_threads(1)
    train = {"plain": plain, "local": local}[sys.argv[1]]
    sys.stdout.write("LOSSES " + json.dumps({kind: train(kind) for kind in sys.argv[2:]}) + "\n")
