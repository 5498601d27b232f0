"""Batches for a model of graphs: arrays out of every kind of data, from any batch of the training on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.data import IndexedFeed, view_of_sequence
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.feed import Feed
from det_harness.frameworks.keras.sequences import ArrayBatches, View
from det_harness.frameworks.keras.validation import ValidationFeed, validation_batch_size
from det_native.errors import InvalidDataError, UnsupportedFeatureError
from det_native.keras.data import Data, Kind, is_of_pandas
from det_native.keras.native import FitCall
from det_native.keras.sources import DataSource
from det_native.keras.values import elements_of
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

# Inputs, targets or None, sample weights or None.
Batch = tuple[Any, Any, Any]


def make_feed(call: FitCall, environment: TrialEnvironment, lengths: EpochLengths) -> Feed:
    """Make the feed for the training data of a call: batches by their number, for ``GraphLoop``.

    Parameters
    ----------
    environment : TrialEnvironment
        Its trial seed orders the data, its batch size cuts them.
    """
    data, seed, shuffle = call.training, environment.trial_seed, call.arguments["shuffle"]
    _refuse_sparse(data)
    if data.kind.indexed:
        shuffle = shuffle.lower() if isinstance(shuffle, str) else shuffle
        size = call.per_slot_batch_size(environment)
        return _ViewFeed(call, View(ArrayBatches(rows_of(data), int(data.records or 0), size, shuffle, seed), lengths))
    if data.kind is Kind.SEQUENCE:
        return _ViewFeed(call, view_of_sequence(call.arguments, call.source, lengths, shuffle=bool(shuffle), seed=seed))
    return _StreamFeed(data)


class _ViewFeed(IndexedFeed):
    """Rows of arrays, or a Sequence."""

    def arguments(self, batches: int) -> dict[str, Any]:
        return {"x": self._batches(batches)}

    def first(self) -> Batch:
        return batch_of(self._view.first)

    def _batches(self, done: int) -> Iterator[Batch]:
        self._view.start(done)
        while True:
            # Where an epoch ends, the view is told before the next batch is asked for.
            with _reading(self._call.arguments, self._view) as batches:
                yield from map(batch_of, batches)


class _StreamFeed(Feed):
    """A Dataset or a generator, which is read again from its start to where a run continues; only a generator ends."""

    def __init__(self, data: Data) -> None:
        self._data = data

    def arguments(self, batches: int) -> dict[str, Any]:
        return {"x": self._batches(batches)}

    def first(self) -> Batch:
        data = self._data
        return batch_of(data.x.peek() if data.kind is Kind.GENERATOR else next(elements_of(data.x.take(1))))

    def _batches(self, done: int) -> Iterator[Batch]:
        data = self._data
        if done:
            logger.info("Reading the first %d batches of %s again, to continue after them.", done, data.kind)
        if data.kind is Kind.GENERATOR:
            data.x.skip(done)
            yield from map(batch_of, data.x)
        else:
            yield from map(batch_of, elements_of(data.x.repeat().skip(done)))


class GraphValidationFeed(ValidationFeed):
    """See ``ValidationFeed``; the loop reads its batches."""

    def _batches(self, data: Data, batch_size: int, steps: int | None) -> Any:
        _refuse_sparse(data)
        call = self._call
        if data.kind.indexed:
            records = int(data.records or 0)
            rows = ArrayBatches(rows_of(data), records, validation_batch_size(call, records, batch_size), False, 0)
            return View(rows, EpochLengths(len(rows)))
        if data.kind is Kind.SEQUENCE:
            self._source = DataSource(data.x, kept_elsewhere=[*call.trained_parts, *call.callbacks()])
            self._source.look()
            return view_of_sequence(call.validation_queue, self._source, EpochLengths(len(data.x)))
        if data.kind is Kind.GENERATOR and steps is None:
            raise InvalidDataError("The validation generator does not tell where it ends: pass validation_steps.")
        return data.x

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of one validation."""
        if isinstance(self.x, View):
            with _reading(self._call.validation_queue, self.x) as batches:
                yield from map(batch_of, islice(batches, self.steps))
        elif isinstance(self.x, tf.data.Dataset):
            yield from map(batch_of, elements_of(self.x if self.steps is None else self.x.take(self.steps)))
        else:
            yield from map(batch_of, islice(self.x, self.steps))


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
