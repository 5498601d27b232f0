"""What a training asks of its data, whatever they are."""

# ruff: noqa: B027 (what only some feeds do is nothing here)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Keras's function that trains on the next batch of an iterator.
TrainFunction = Callable[[Any], Any]


class Feed(ABC):
    """The training data of one run. By itself, a feed needs nothing but the number of batches to go on."""

    @property
    def error(self) -> BaseException | None:
        """What the user's code that makes batches raised; TensorFlow passes on only its text."""
        return None

    @abstractmethod
    def arguments(self, batches: int) -> dict[str, Any]:
        """Return arguments of ``fit`` for data that continue after `batches` batches."""

    @abstractmethod
    def first(self) -> Any:
        """Return a batch to build the model with, without taking it."""

    def restore(self, folder: Path) -> None:
        """Take what a checkpoint has of the data, before :meth:`arguments` is asked."""

    def attach(self, train: TrainFunction, batches: int, folder: Path | None) -> TrainFunction:
        """Return what trains on one batch: Keras's own function, or one around it that has another iterator.

        With a folder, the data are brought to where they were when it was written, after `batches` batches.
        """
        return train

    def all_read(self) -> None:
        """The last batch of an epoch is trained; a validation may follow."""

    def epoch_ended(self, epochs_done: int) -> None:
        """Prepare for the next epoch."""

    def save(self, folder: Path, batches: int) -> None:
        """Write into a checkpoint, after `batches` batches, what :meth:`restore` and :meth:`attach` need."""

    def close(self) -> None:
        """End what reads ahead."""
