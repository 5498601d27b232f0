"""The user's Dataset, pass after pass, from any batch of any pass.

Each pass over it has an iterator of its own. Keras begins some that it never reads, of which shuffles draw seeds: so do
we, and each epoch has the order of plain Keras. An iterator's state, buffers of shuffles
included, goes into a checkpoint, and how many seeds its shuffles have drawn (``det_native.keras.shuffles``). Where
TensorFlow cannot save the state, a later process reads the pass again up to the batch; a Python generator is read again
from the first batch.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.feed import Feed
from det_harness.trial import state_files
from det_native.keras import shuffles
from det_native.keras.generations import NUMBER, internals
from det_native.keras.pipelines import reads_from_python
from det_native.keras.values import number_of

logger = logging.getLogger("det_native")

_STATE = "data"
_POSITION = "data_position"


class DatasetFeed(Feed):
    """See ``Feed``.

    Parameters
    ----------
    in_one_pass : bool
        Have TensorFlow repeat the Dataset, as it does with one of unknown length: where a step of training takes
        several batches, a pass may not end in between.
    class_weight : dict, optional
        The weight of each class, which Keras would put into the pipeline that is not read here.
    steps : int, optional
        The ``steps_per_epoch`` of the call.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        in_one_pass: bool = False,
        class_weight: dict[int, float] | None = None,
        steps: int | None = None,
    ) -> None:
        self._given = dataset
        if class_weight is not None:
            dataset = dataset.map(internals.class_weighting(class_weight))
        # A pass has to end before the step of training that would find no batch: that one has drawn random numbers and
        # counted itself when it fails.
        length = int(dataset.cardinality())
        self._by_epochs = length == tf.data.UNKNOWN_CARDINALITY and steps is None
        self._length = length if length > 0 and not in_one_pass else math.inf
        endless = length == tf.data.INFINITE_CARDINALITY
        ends = self._length == math.inf and not endless and (in_one_pass or not self._by_epochs)
        self._dataset = dataset.repeat() if ends else dataset
        self._iterator: Any = None
        self._steps = steps
        self._at_first = self._begun = self._of_pass = shuffles.places(dataset)
        self._taken, self._ended = 0, False
        self._from_python = reads_from_python(dataset)
        self._reason = "it reads from a Python generator" if self._from_python else ""
        self._reported = False

    def arguments(self, batches: int) -> dict[str, Any]:
        """Return a Dataset without end, so that Keras leaves the passes to us: it is not read."""
        return {"x": self._given.repeat()}

    def first(self) -> Any:
        """Return zeros where the shapes are known; the first batch elsewhere."""
        shapes = [specification.shape for specification in tf.nest.flatten(self._given.element_spec)]
        if all(shape.rank is not None and None not in shape[1:] for shape in shapes):
            return empty_batch(self._given)
        return next(iter(self._given))

    def attach(self, train: Callable[[Any], Any], batches: int, folder: Path | None) -> Callable[[Any], Any]:
        """Return a function that trains on the next batch of our iterator, whatever Keras's own is."""
        if folder is not None and batches:
            self._resume(folder, batches)
        else:
            self._draw_as_keras()

        def train_next(_: Any) -> Any:
            return self._take(train)

        return train_next

    def _take(self, read: Callable[[Any], Any]) -> Any:
        """Read the next batch; a pass may end within an epoch that the configuration makes longer."""
        try:
            return read(self._next())
        except (StopIteration, tf.errors.OutOfRangeError):
            if not self._by_epochs or not self._taken:
                raise
            self._ended = True
            return read(self._next())

    def _draw_as_keras(self) -> None:
        """Have the shuffles drawn what they have when Keras begins with its first pass."""
        shuffles.put_places(self._given, self._at_first)  # Keras's own iterator has drawn, and maybe a validation
        if NUMBER == 2 and self._steps in (None, number_of(self._given.cardinality())):
            iter(self._dataset)

    def all_read(self) -> None:
        """Begin the next pass, as Keras 3 does; where it has not been told of steps, it will begin once more."""
        if self._by_epochs:
            shuffles.put_places(self._given, self._of_pass)  # the repeated Dataset may have begun with the next pass
            self._ended = True
        elif NUMBER > 2 and self._taken >= self._length:
            if self._steps is None:
                iter(self._dataset)
            else:
                self._begin()

    def save(self, folder: Path, batches: int) -> None:
        """Write how much of the present pass is taken, the seeds of its order, and the iterator's state, if it can."""
        if self._iterator is None:
            return
        whole = not self._reason and self._save_state(folder)
        drawn = {"begun": self._begun, "drawn": shuffles.places(self._given)}
        state_files.dump(
            folder,
            _POSITION,
            {
                "taken": self._taken,
                "ended": self._ended or self._taken >= self._length,
                "state": whole,
                "again": self._from_python,
                **drawn,
            },
        )
        if self._reason and not self._reported:
            self._reported = True
            logger.warning(
                "The position in the training Dataset cannot be saved (%s): after a restart its batches are read "
                "again from the first%s.",
                self._reason,
                "" if self._from_python else " of the epoch",
            )

    def close(self) -> None:
        """End what reads ahead."""
        self._iterator = None

    def _next(self) -> Any:
        """Return an iterator that has a batch, and count it as taken."""
        if self._iterator is None or self._ended or self._taken >= self._length:
            self._begin()
        self._taken += 1
        return self._iterator

    def _begin(self) -> None:
        self._begun = shuffles.places(self._given)
        self._iterator = iter(self._dataset)
        self._of_pass = shuffles.places(self._given)
        self._taken, self._ended = 0, False

    def _save_state(self, folder: Path) -> bool:
        try:
            tf.train.Checkpoint(iterator=self._iterator).write(str(folder / _STATE))
        except (tf.errors.FailedPreconditionError, tf.errors.UnimplementedError) as error:
            self._reason = error.message.rsplit("}}", 1)[-1].split("[Op", 1)[0].strip()
            return False
        return True

    def _resume(self, folder: Path, batches: int) -> None:
        try:
            position = state_files.load(folder, _POSITION)
        except FileNotFoundError:
            position = {"again": True}
        if position["again"]:
            logger.info("Reading the first %d batches of the training Dataset again, to continue after them.", batches)
            self._draw_as_keras()
            self._skip(batches)
            return
        shuffles.put_places(self._given, position["begun"])
        if not position["ended"]:
            self._begin()
        if self._iterator is None:
            pass  # the next pass begins with the next batch
        elif position["state"]:
            tf.train.Checkpoint(iterator=self._iterator).read(str(folder / _STATE))
            self._taken = position["taken"]
        else:
            logger.info("Reading %d batches of the training Dataset again, to continue after them.", position["taken"])
            self._skip(position["taken"])
        shuffles.put_places(self._given, position["drawn"])

    def _skip(self, batches: int) -> None:
        for _ in range(batches):
            self._take(next)


def empty_batch(dataset: Any) -> Any:
    """Return zeros of the form of a Dataset's batches, with one row where their number is open."""
    return tf.nest.map_structure(
        lambda specification: tf.zeros([size or 1 for size in specification.shape], specification.dtype),
        dataset.element_spec,
    )
