"""The tiny model's data and clock, for our loop and for those of other libraries; needs torch only."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils.data import Dataset

BATCHES = 2000


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
