"""Batches for a model of graphs: arrays out of every kind of data, from any batch of the training on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.data import restore_view, save_view, view_of_sequence
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.feed import Feed
from det_harness.frameworks.keras.sequences import ArrayBatches, View
from det_harness.frameworks.keras.validation import restore_source, save_source, validation_batch_size
from det_native.errors import InvalidDataError, UnsupportedFeatureError
from det_native.keras.data import Data, Kind, is_of_pandas
from det_native.keras.native import FitCall
from det_native.keras.sources import DataSource
from det_native.keras.values import elements_of
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

# Inputs, targets or None, sample weights or None.
Batch = tuple[Any, Any, Any]


class GraphFeed(Feed):
    """The training data of one run, as batches by their number.

    A Dataset and a generator are read again from their start to where a run continues.

    Parameters
    ----------
    environment : TrialEnvironment
        Its trial seed orders the data, its batch size cuts them.
    """

    def __init__(self, call: FitCall, environment: TrialEnvironment, steps: int) -> None:
        self._call = call
        lengths = EpochLengths(steps)
        data, seed, shuffle = call.training, environment.trial_seed, call.arguments["shuffle"]
        _refuse_sparse(data)
        self._view: View | None = None
        if data.kind.indexed:
            shuffle = shuffle.lower() if isinstance(shuffle, str) else shuffle
            size = call.per_slot_batch_size(environment)
            self._view = View(ArrayBatches(rows_of(data), int(data.records or 0), size, shuffle, seed), lengths)
        elif data.kind is Kind.SEQUENCE:
            self._view = view_of_sequence(call.arguments, call.source, lengths, shuffle=bool(shuffle), seed=seed)

    @property
    def error(self) -> BaseException | None:
        """What the user's code that makes batches raised."""
        return None if self._view is None else self._view.error

    def first(self) -> Batch:
        """Return a batch to build the model with, without taking it."""
        if self._view is not None:
            return batch_of(self._view.first)
        if self._call.training.kind is Kind.GENERATOR:
            return batch_of(self._call.training.x.peek())
        return batch_of(next(elements_of(self._call.training.x.take(1))))

    def batches(self, done: int) -> Iterator[Batch]:
        """Yield the batches after the first `done` of all; only a generator ends."""
        data = self._call.training
        if self._view is not None:
            self._view.start(done)
            while True:
                # Where an epoch ends, the view is told before the next batch is asked for.
                with _reading(self._call.arguments, self._view) as batches:
                    yield from map(batch_of, batches)
        if done:
            logger.info("Reading the first %d batches of %s again, to continue after them.", done, data.kind)
        if data.kind is Kind.GENERATOR:
            data.x.skip(done)
            yield from map(batch_of, data.x)
        else:
            yield from map(batch_of, elements_of(data.x.repeat().skip(done)))

    def epoch_ended(self, epochs_done: int) -> None:
        """Prepare for the next epoch."""
        if self._view is not None:
            self._view.begin_epoch(epochs_done)

    def restore(self, folder: Path) -> None:
        """Take what a checkpoint has of a Sequence; of all else the number of batches is enough."""
        if self._view is not None:
            restore_view(self._view, folder)

    def save(self, folder: Path, batches: int) -> None:
        """Write what a Sequence needs to go on."""
        if self._view is not None:
            save_view(self._view, folder, batches)

    def close(self) -> None:
        """End what reads ahead."""
        if self._view is not None:
            self._view.close()


class GraphValidationFeed:
    """The validation data of one run.

    Parameters
    ----------
    most : int, optional
        Batches of one validation at most.

    Attributes
    ----------
    x
        What the batches are read from; None without validation data.
    """

    def __init__(self, call: FitCall, environment: TrialEnvironment, most: int | None) -> None:
        self._call = call
        data, steps = call.validation, call.arguments["validation_steps"]
        self._steps = most if steps is None else min(steps, most or steps)
        self.x: Any = None
        self._source: DataSource | None = None
        if data is None:
            return
        _refuse_sparse(data)
        self.x = data.x
        if data.kind.indexed:
            records = int(data.records or 0)
            size = validation_batch_size(call, records, call.per_slot_batch_size(environment))
            rows = ArrayBatches(rows_of(data), records, size, False, 0)
            self.x = View(rows, EpochLengths(len(rows)))
        elif data.kind is Kind.SEQUENCE:
            self._source = DataSource(data.x, kept_elsewhere=[*call.trained_parts, *call.callbacks()])
            self._source.look()
            self.x = view_of_sequence(call.validation_queue, self._source, EpochLengths(len(data.x)))
        elif data.kind is Kind.GENERATOR and steps is None:
            raise InvalidDataError("The validation generator does not tell where it ends: pass validation_steps.")

    @property
    def counts(self) -> bool:
        """Whether what this rank validates on is its own: graph mode has one slot."""
        return True

    @property
    def error(self) -> BaseException | None:
        """What reading a batch raised."""
        return self.x.error if isinstance(self.x, View) else None

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of one validation."""
        if isinstance(self.x, View):
            with _reading(self._call.validation_queue, self.x) as batches:
                yield from map(batch_of, islice(batches, self._steps))
        elif isinstance(self.x, tf.data.Dataset):
            yield from map(batch_of, elements_of(self.x if self._steps is None else self.x.take(self._steps)))
        else:
            yield from map(batch_of, islice(self.x, self._steps))

    def save(self, folder: Path) -> None:
        """Write into a checkpoint what a Sequence keeps."""
        if self._source is not None:
            save_source(self._source, folder)

    def restore(self, folder: Path) -> None:
        """Bring what a Sequence keeps to where it was when the folder was written."""
        if self._source is not None:
            restore_source(self._source, folder)

    def close(self) -> None:
        """End what reads ahead."""
        if isinstance(self.x, View):
            self.x.close()


def batch_of(batch: Any) -> Batch:
    """Return inputs, targets and sample weights of a batch, as Keras's ``train_on_batch`` takes them."""
    x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(batch)
    return _listed(x), _listed(y), _listed(weight)


def rows_of(data: Data) -> tuple[Any, ...]:
    """Return ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)`` as structures of arrays."""
    parts = (data.x, data.y, data.sample_weight)
    count = 3 if data.sample_weight is not None else 2 if data.y is not None else 1
    return tuple(
        tf.nest.map_structure(_array, tuple(part) if isinstance(part, list) else part) for part in parts[:count]
    )


def _array(leaf: Any) -> Any:
    if is_of_pandas(leaf):
        found = leaf.to_numpy()
        leaf = found[:, None] if found.ndim == 1 else found
    if isinstance(leaf, tf.Tensor | tf.Variable):
        leaf = tf.keras.backend.get_value(leaf)
    if isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.floating):
        return leaf.astype(tf.keras.backend.floatx(), copy=False)
    return leaf


def _listed(part: Any) -> Any:
    """Return several inputs or outputs as a list: of a tuple a model of graphs would make one array."""
    return list(part) if isinstance(part, tuple) else part


def _refuse_sparse(data: Data) -> None:
    if data.kind is Kind.SPARSE:
        raise UnsupportedFeatureError(
            f"Graph mode does not train on {data.kind}: make arrays of them, or leave eager execution switched on."
        )


@contextmanager
def _reading(given: Mapping[str, Any], view: View) -> Iterator[Iterable[Any]]:
    """Read the batches of the present epoch, in processes if the arguments for Keras's queues ask for these."""
    workers = int(given["workers"])
    if not given["use_multiprocessing"] or workers < 1:
        yield (view.read(number) for number in range(view.remaining))
        return
    queue = tf.keras.utils.OrderedEnqueuer(view, use_multiprocessing=True)
    queue.start(workers=workers, max_queue_size=int(given["max_queue_size"]))
    try:
        yield islice(queue.get(), len(view))
    finally:
        queue.stop()
