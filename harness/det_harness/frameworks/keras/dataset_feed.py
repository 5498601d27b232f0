"""The user's Dataset, pass after pass, from any batch of any pass.

Each pass over it has an iterator of its own, as plain Keras has one for each epoch. Its state, buffers of shuffles
included, goes into a checkpoint. But a shuffle whose last record has been read, maybe ahead of the training, is
forgotten by TensorFlow's iterators, with the seeds of its next passes. A state without them is not kept: a shuffle
draws its seeds at the beginning of a pass, so a later process begins as many passes, and reads the last one up to the
batch. What TensorFlow cannot save at all is read again from the first batch.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.trial import state_files
from det_native.keras.generations import internals
from det_native.keras.pipelines import reads_from_python, reseedings

logger = logging.getLogger("det_native")

_STATE = "data"
_POSITION = "data_position"
# What the state of each shuffle has, in a file that TensorFlow writes without compression.
_SEEDS = b"epoch_num_random_samples"


class DatasetFeed:
    """See ``Feed``.

    Parameters
    ----------
    dataset : tf.data.Dataset
    in_one_pass : bool
        Have TensorFlow repeat the Dataset, as it does with one of unknown length: where a step of training takes
        several batches, a pass may not end in between.
    class_weight : dict, optional
        The weight of each class, which Keras would put into the pipeline that is not read here.
    """

    def __init__(
        self, dataset: Any, *, in_one_pass: bool = False, class_weight: dict[int, float] | None = None
    ) -> None:
        self.error = None
        self._given = dataset
        if class_weight is not None:
            dataset = dataset.map(internals.class_weighting(class_weight))
        # A pass has to end before the step of training that would find no batch: that one has drawn random numbers and
        # counted itself when it fails.
        length = int(dataset.cardinality())
        self._length = length if length > 0 and not in_one_pass else math.inf
        endless = length == tf.data.INFINITE_CARDINALITY
        self._dataset = dataset.repeat() if self._length == math.inf and not endless else dataset
        self._iterator: Any = None
        self._passes = self._taken = 0
        self._from_python = reads_from_python(dataset)
        self._reason = "it reads from a Python generator" if self._from_python else ""
        self._reported = False
        self._seeds: tuple[int, bool] | None = None

    def arguments(self, batches: int) -> dict[str, Any]:
        """Return a Dataset without end, so that Keras leaves the passes to us: it is not read."""
        return {"x": self._given.repeat()}

    def first(self) -> Any:
        """Return zeros where the shapes are known; the first batch elsewhere."""
        shapes = [specification.shape for specification in tf.nest.flatten(self._given.element_spec)]
        if all(shape.rank is not None and None not in shape[1:] for shape in shapes):
            return tf.nest.map_structure(
                lambda specification: tf.zeros([size or 1 for size in specification.shape], specification.dtype),
                self._given.element_spec,
            )
        return next(iter(self._given))

    def attach(self, train: Callable[[Any], Any], batches: int, folder: Path | None) -> Callable[[Any], Any]:
        """Return a function that trains on the next batch of our iterator, whatever Keras's own is."""
        if folder is not None and batches:
            self._resume(folder, batches)

        def train_next(_: Any) -> Any:
            return train(self._next())

        return train_next

    def all_read(self) -> None:
        """Nothing to do."""

    def epoch_ended(self, epochs_done: int) -> None:
        """Nothing to prepare: the passes follow on each other by themselves."""

    def restore(self, folder: Path) -> None:
        """Nothing to take: :meth:`attach` does."""

    def save(self, folder: Path, batches: int) -> None:
        """Write how many passes there were, how much of the last one, and the iterator's state if it is whole."""
        if self._iterator is None:
            return
        whole = not self._reason and self._save_state(folder)
        again = bool(self._reason)
        state_files.dump(
            folder, _POSITION, {"passes": self._passes, "taken": self._taken, "state": whole, "again": again}
        )
        if again and not self._reported:
            self._reported = True
            logger.warning(
                "The position in the training Dataset cannot be saved (%s): after a restart its batches are read "
                "again from the first.",
                self._reason,
            )

    def close(self) -> None:
        """End what reads ahead."""
        self._iterator = None

    def _next(self) -> Any:
        """Return an iterator that has a batch, and count it as taken."""
        if self._iterator is None or self._taken >= self._length:
            self._begin()
        self._taken += 1
        return self._iterator

    def _begin(self) -> None:
        self._iterator = iter(self._dataset)
        self._passes += 1
        self._taken = 0

    def _save_state(self, folder: Path) -> bool:
        try:
            tf.train.Checkpoint(iterator=self._iterator).write(str(folder / _STATE))
        except (tf.errors.FailedPreconditionError, tf.errors.UnimplementedError) as error:
            self._reason = error.message.rsplit("}}", 1)[-1].split("[Op", 1)[0].strip()
            return False
        files = list(folder.glob(f"{_STATE}.*"))
        if sum(file.read_bytes().count(_SEEDS) for file in files) >= self._seeds_of_a_pass()[0]:
            return True
        for file in files:
            file.unlink()
        return False

    def _seeds_of_a_pass(self) -> tuple[int, bool]:
        if self._seeds is None:
            self._seeds = reseedings(self._dataset)
        return self._seeds

    def _resume(self, folder: Path, batches: int) -> None:
        try:
            position = state_files.load(folder, _POSITION)
        except FileNotFoundError:
            position = {"passes": 1, "taken": batches, "state": False, "again": True}
        if position["state"]:
            self._begin()
            tf.train.Checkpoint(iterator=self._iterator).read(str(folder / _STATE))
            self._passes, self._taken = position["passes"], position["taken"]
        elif position["again"] or not self._seeds_of_a_pass()[1]:
            logger.info("Reading the first %d batches of the training Dataset again, to continue after them.", batches)
            self._skip(batches)
        else:
            logger.info("Reading %d batches of the training Dataset again, to continue after them.", position["taken"])
            for _ in range(position["passes"]):
                self._begin()
            self._skip(position["taken"])

    def _skip(self, batches: int) -> None:
        for _ in range(batches):
            next(self._next())
