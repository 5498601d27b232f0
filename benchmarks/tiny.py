"""The tiny model's data and clock, for our loop and for those of other libraries; needs torch only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

BATCHES = 3000
STRETCH = 100


class InMemory(Dataset[Any]):
    """Rows of tensors, fetched a batch at a time, so that the loader is cheap for both sides."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: int) -> Any:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: list[int]) -> Any:
        rows = torch.tensor(indices)
        return tuple(tensor[rows] for tensor in self.tensors)


def as_fetched(batch: Any) -> Any:
    """Collate nothing: the dataset gives whole batches."""
    return batch


def made_dataset() -> InMemory:
    """Return 500 batches of 32."""
    generator = torch.Generator().manual_seed(0)
    return InMemory(torch.randn(32 * 500, 64, generator=generator), torch.randint(10, (32 * 500,), generator=generator))


class Clock:
    """Takes the time of the batches alone: from the first ``train_batch`` to the last."""

    def __init__(self) -> None:
        self.first = self.last = 0.0
        self.batches = 0

    def tick(self) -> None:
        self.last = time.perf_counter()
        self.first = self.first or self.last
        self.batches += 1

    @property
    def per_batch(self) -> float:
        return (self.last - self.first) / (self.batches - 1)


class Stretches:
    """Takes the time of a loop in short stretches, after each of which a bare loop does the same in the same process.

    A machine that others use is faster in one second than in the next, by far more than what is looked for here.

    Attributes
    ----------
    pairs : list of tuple
        Seconds per batch of the loop, and of the bare one right after; the first stretch is left out.
    """

    def __init__(self, bare: Iterator[float], length: int = STRETCH) -> None:
        self._bare, self._length = bare, length
        self._begin = 0.0
        self.batches = 0
        self.pairs: list[tuple[float, float]] = []

    def tick(self) -> None:
        """Note that a batch of the loop begins."""
        self.batches += 1
        if self.batches % self._length != 1 % self._length:
            return
        seconds = time.perf_counter() - self._begin
        other = next(self._bare)
        if self.batches > 2 * self._length:
            self.pairs.append((seconds / self._length, other / self._length))
        self._begin = time.perf_counter()


def bare_stretches(
    batches: Iterator[Any], model: nn.Module, optimizer: torch.optim.Optimizer, length: int = STRETCH
) -> Iterator[float]:
    """Train by hand; yield the seconds that each stretch of batches took."""
    while True:
        begin = time.perf_counter()
        for _ in range(length):
            inputs, labels = next(batches)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        yield time.perf_counter() - begin
