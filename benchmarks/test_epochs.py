"""Cost of a loop over ``context.epochs()`` over the same loop without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from tiny import as_fetched, made_dataset
from torch import nn

import det_native as det

FULL_BATCH_EPOCHS = 2_000
EPOCHS = 4


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run torch on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Loop:
    """A model, what trains it, and how its epochs are counted: by ``range``, or by a context.

    Parameters
    ----------
    wrapped : bool
    epochs : int
    """

    def __init__(self, *, wrapped: bool, epochs: int) -> None:
        self.model: Any = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.optimizer: Any = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.loader: Any = torch.utils.data.DataLoader(
            made_dataset(), batch_size=32, shuffle=True, collate_fn=as_fetched
        )
        self.numbers: Iterable[int] = range(epochs)
        self.report: Callable[..., Any] = lambda **metrics: None
        if wrapped:
            context = det.experimental.pytorch.init(local=True, show="none")
            self.model, self.optimizer, self.loader = context.wrap(self.model, self.optimizer, self.loader)
            self.numbers, self.report = context.epochs(epochs), context.report

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(inputs), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def timed(self, body: Callable[[], torch.Tensor]) -> float:
        """Return the seconds from the first epoch's beginning to the last one's end."""
        first = last = 0.0
        for _ in self.numbers:
            first = first or time.perf_counter()
            loss = body()
            self.report(loss=loss)
            last = time.perf_counter()
        return last - first

    def over_batches(self) -> torch.Tensor:
        for inputs, labels in self.loader:
            loss = self.step(inputs, labels)
        return loss


def _full_batch(*, wrapped: bool) -> float:
    loop = Loop(wrapped=wrapped, epochs=FULL_BATCH_EPOCHS)
    inputs, labels = (tensor[:256] for tensor in made_dataset().tensors)
    return loop.timed(lambda: loop.step(inputs, labels))


def _batches(*, wrapped: bool) -> float:
    loop = Loop(wrapped=wrapped, epochs=EPOCHS)
    return loop.timed(loop.over_batches)


def test_full_batch_epochs(paired: Any) -> None:
    paired(
        f"{FULL_BATCH_EPOCHS:,} epochs of one full batch in `context.epochs()`, over the plain loop",
        lambda: _full_batch(wrapped=True),
        lambda: _full_batch(wrapped=False),
        goal=1.10,
        value=lambda result, seconds: result,
    )


def test_epochs_of_batches(paired: Any) -> None:
    paired(
        f"{EPOCHS} epochs of 500 batches (tiny MLP) in `context.epochs()` with a wrapped loader, over the plain loop",
        lambda: _batches(wrapped=True),
        lambda: _batches(wrapped=False),
        goal=1.05,
        value=lambda result, seconds: result,
    )
