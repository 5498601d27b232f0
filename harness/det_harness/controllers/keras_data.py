"""How training data reach Keras's loop, so that any batch of a trial can be reached again after a restart.

The order of arrays and Sequences is a pure function of (trial seed, epoch); a Dataset's iterator is saved; a generator
is pulled again from its start.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from det_harness.controllers.keras_sequences import ArrayBatches, SequenceBatches, View, permutation
from det_native.keras.data import Data, Kind
from det_native.keras.native import FitCall
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

_FOREVER = np.iinfo(np.int64).max


class Feed(Protocol):
    """The training data of one run."""

    @property
    def error(self) -> BaseException | None:
        """What the user's code that makes batches raised; TensorFlow passes on only its text."""

    def arguments(self, batches: int) -> dict[str, Any]:
        """Return arguments of ``fit`` for data that continue after `batches` batches."""

    def first(self) -> Any:
        """Return a batch to build the model with, without taking it."""

    def attach(self, iterator: Any, batches: int, folder: Path | None) -> None:
        """See the iterator that Keras made; with a folder, bring it to where it was when the folder was written."""

    def epoch_ended(self, epochs_done: int) -> None:
        """Prepare for the next epoch."""

    def save(self, folder: Path) -> None:
        """Write what :meth:`attach` needs into a checkpoint."""


def make_feed(call: FitCall, environment: TrialEnvironment, steps: int) -> Feed:
    """Make the feed for the training data of a call.

    Parameters
    ----------
    call : FitCall
    environment : TrialEnvironment
        Its trial seed orders the data, its batch size cuts them.
    steps : int
        Batches per epoch.
    """
    data, shuffle, seed = call.training, call.arguments["shuffle"], environment.trial_seed
    if data.kind is Kind.GENERATOR:
        return _GeneratorFeed(call)
    if data.kind is Kind.DATASET:
        return _DatasetFeed(data.x)
    batch_size = call.per_slot_batch_size(environment) if data.kind.indexed else 0
    if data.kind is Kind.ARRAYS:
        return _ArrayFeed(data, batch_size, shuffle, seed)
    if data.kind is Kind.SPARSE:
        rows = tf.data.Dataset.from_tensor_slices(packed(data))
        return _DatasetFeed((rows.shuffle(int(data.records or 0), seed) if shuffle else rows).batch(batch_size))
    if data.kind is Kind.ARRAY_LIKES:
        return _IndexedFeed(
            call, View(ArrayBatches(packed(data), int(data.records or 0), batch_size, shuffle, seed), steps)
        )
    threads = call.arguments["workers"] > 1 and not call.arguments["use_multiprocessing"]
    return _IndexedFeed(call, View(SequenceBatches(data.x, bool(shuffle), seed, isolate=not threads), steps))


def validation_arguments(call: FitCall, environment: TrialEnvironment) -> dict[str, Any]:
    """Return ``x`` and ``steps`` of ``evaluate`` for the call's validation data."""
    data, steps = call.validation, call.arguments["validation_steps"]
    if data is None:
        return {}
    if not data.kind.indexed:
        return {"x": data.x, "steps": steps}
    records = int(data.records or 0)
    size = call.arguments["validation_batch_size"]
    if size is None and call.arguments["batch_size"] is None and steps is not None:
        size = math.ceil(records / steps)
    size = size or call.per_slot_batch_size(environment)
    if data.kind is Kind.ARRAYS:
        batches = math.ceil(records / size)
        dataset = array_batches(packed(data), records, size, epochs=1).apply(
            tf.data.experimental.assert_cardinality(batches)
        )
    elif data.kind is Kind.SPARSE:
        dataset = tf.data.Dataset.from_tensor_slices(packed(data)).batch(size)
    else:
        dataset = View(ArrayBatches(packed(data), records, size, False, 0), math.ceil(records / size))
    return {"x": dataset, "steps": steps}


def packed(data: Data) -> tuple[Any, ...]:
    """Return ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``: floats in Keras's precision, no weights missing."""
    parts: tuple[Any, ...] = (data.x,)
    if data.sample_weight is not None:
        parts = (data.x, data.y, _complete(data.sample_weight, int(data.records or 0)))
    elif data.y is not None:
        parts = (data.x, data.y)
    return tuple(_tensors(part) for part in parts)


def array_batches(
    rows: tuple[Any, ...],
    records: int,
    batch_size: int,
    *,
    shuffle: bool | str = False,
    seed: int = 0,
    first_batch: int = 0,
    epochs: int = _FOREVER,
) -> tf.data.Dataset:
    """Return batches of arrays, epoch after epoch, from batch number `first_batch` of all.

    Parameters
    ----------
    rows : structure of tensors
        Their first dimension is `records`.
    shuffle : bool or "batch"
        True orders the rows of every epoch anew; ``"batch"`` orders whole batches, and the rows within each.
    """
    per_epoch = math.ceil(records / batch_size)
    rest = records % batch_size

    @tf.autograph.experimental.do_not_convert
    def order(epoch: Any) -> Any:
        if not shuffle:
            return epoch, tf.range(records, dtype=tf.int64)
        indices = tf.numpy_function(
            lambda number: permutation(seed, int(number), records, batch_size if shuffle == "batch" else 1),
            [epoch],
            tf.int64,
        )
        return epoch, tf.ensure_shape(indices, [records])

    @tf.autograph.experimental.do_not_convert
    def cut(epoch: Any, indices: Any) -> tf.data.Dataset:
        skipped = tf.where(epoch == first_batch // per_epoch, np.int64(first_batch % per_epoch), np.int64(0))
        indices = indices[skipped * batch_size :]
        whole = tf.shape(indices, tf.int64)[0] // batch_size * batch_size
        batches = tf.data.Dataset.from_tensor_slices(tf.reshape(indices[:whole], [-1, batch_size]))
        if rest:
            batches = batches.concatenate(tf.data.Dataset.from_tensors(indices[whole:]))
        return batches

    @tf.autograph.experimental.do_not_convert
    def gather(indices: Any, whole: Any) -> Any:
        return tf.nest.map_structure(lambda array: tf.gather(array, indices, axis=0), whole)

    start = first_batch // per_epoch
    numbers = tf.data.Dataset.range(start, _FOREVER if epochs == _FOREVER else start + epochs)
    # One permutation ahead is enough, and several at once would get in each other's way.
    orders = numbers.map(order).prefetch(1)
    batches = tf.data.Dataset.zip((orders.flat_map(cut), tf.data.Dataset.from_tensors(rows).repeat()))
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return batches.map(gather, num_parallel_calls=tf.data.AUTOTUNE).with_options(options).prefetch(tf.data.AUTOTUNE)


class _ArrayFeed:
    """Arrays and tensors: where the data stand follows from the number of batches alone."""

    def __init__(self, data: Data, batch_size: int, shuffle: bool | str, seed: int) -> None:
        self.error = None
        self._rows = packed(data)
        self._records = int(data.records or 0)
        self._batch_size = batch_size
        self._shuffle = shuffle.lower() if isinstance(shuffle, str) else shuffle
        self._seed = seed

    def arguments(self, batches: int) -> dict[str, Any]:
        dataset = array_batches(
            self._rows,
            self._records,
            self._batch_size,
            shuffle=self._shuffle,
            seed=self._seed,
            first_batch=batches,
        )
        return {"x": dataset}

    def first(self) -> Any:
        return tf.nest.map_structure(lambda array: array[: self._batch_size], self._rows)

    def attach(self, iterator: Any, batches: int, folder: Path | None) -> None:
        """Nothing to bring back: :meth:`arguments` starts at the right batch."""

    def epoch_ended(self, epochs_done: int) -> None:
        """Nothing to prepare: the pipeline runs on."""

    def save(self, folder: Path) -> None:
        """Nothing to write."""


class _DatasetFeed:
    """The user's Dataset, repeated: its iterator's state, buffers of shuffles included, goes into the checkpoint."""

    def __init__(self, dataset: Any) -> None:
        self.error = None
        self._dataset = dataset
        self._iterator: Any = None
        self._replayed = _has_python_state(dataset)
        self._told = False

    def arguments(self, batches: int) -> dict[str, Any]:
        endless = int(self._dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
        return {"x": self._dataset if endless else self._dataset.repeat()}

    def first(self) -> Any:
        shapes = [specification.shape for specification in tf.nest.flatten(self._dataset.element_spec)]
        if all(shape.rank is not None and None not in shape[1:] for shape in shapes):
            return tf.nest.map_structure(
                lambda specification: tf.zeros([size or 1 for size in specification.shape], specification.dtype),
                self._dataset.element_spec,
            )
        return next(iter(self._dataset))

    def attach(self, iterator: Any, batches: int, folder: Path | None) -> None:
        self._iterator = iterator
        if folder is None:
            return
        if (folder / "data.index").exists():
            tf.train.Checkpoint(iterator=iterator).read(str(folder / "data"))
            return
        logger.info("Reading the first %d batches of the training Dataset again, to continue after them.", batches)
        for _ in range(batches):
            next(iterator)

    def epoch_ended(self, epochs_done: int) -> None:
        """Nothing to prepare: the Dataset repeats itself."""

    def save(self, folder: Path) -> None:
        if self._iterator is None:
            return
        reason = "it reads from a Python generator"
        if not self._replayed:
            try:
                tf.train.Checkpoint(iterator=self._iterator).write(str(folder / "data"))
            except (tf.errors.FailedPreconditionError, tf.errors.UnimplementedError) as error:
                reason = error.message.rsplit("}}", 1)[-1].split("[Op", 1)[0].strip()
                self._replayed = True
            else:
                return
        if not self._told:
            self._told = True
            logger.warning(
                "The position in the training Dataset cannot be saved (%s): after a restart its batches are read "
                "again from the first.",
                reason,
            )


class _IndexedFeed:
    """A Sequence, ours or the user's, read through a view that starts at the right batch of the right epoch."""

    def __init__(self, call: FitCall, view: View) -> None:
        self._call = call
        self._view = view

    @property
    def error(self) -> BaseException | None:
        """What reading an item raised, if it was read in this process."""
        return self._view.error

    def arguments(self, batches: int) -> dict[str, Any]:
        self._view.start(batches)
        return {"x": self._view, **_queue(self._call)}

    def first(self) -> Any:
        return self._view[0]

    def attach(self, iterator: Any, batches: int, folder: Path | None) -> None:
        """Nothing to bring back: the view starts at the right batch."""

    def epoch_ended(self, epochs_done: int) -> None:
        self._view.begin_epoch(epochs_done)

    def save(self, folder: Path) -> None:
        """Nothing to write."""


class _GeneratorFeed:
    """A generator: what was trained on before a restart is pulled again and dropped."""

    def __init__(self, call: FitCall) -> None:
        self._call = call
        self._stream = call.training.x

    @property
    def error(self) -> BaseException | None:
        """What the generator raised."""
        error: BaseException | None = self._stream.error
        return error

    def arguments(self, batches: int) -> dict[str, Any]:
        if batches:
            logger.info("Pulling the first %d batches of the generator again, to continue after them.", batches)
            self._stream.skip(batches)
        return {"x": self._stream, **_queue(self._call)}

    def first(self) -> Any:
        return self._stream.peek()

    def attach(self, iterator: Any, batches: int, folder: Path | None) -> None:
        """Nothing to bring back: the stream was brought there."""

    def epoch_ended(self, epochs_done: int) -> None:
        """Nothing to prepare: the generator runs on."""

    def save(self, folder: Path) -> None:
        """Nothing to write."""


def _queue(call: FitCall) -> dict[str, Any]:
    return {name: call.arguments[name] for name in ("workers", "use_multiprocessing", "max_queue_size")}


def _complete(sample_weight: Any, records: int) -> Any:
    """Fill in ones for outputs without weights, as Keras does."""
    if isinstance(sample_weight, dict):
        return {name: np.ones(records) if part is None else part for name, part in sample_weight.items()}
    if isinstance(sample_weight, list | tuple):
        return [np.ones(records) if part is None else part for part in sample_weight]
    return sample_weight


def _tensors(part: Any) -> Any:
    """Return a structure of tensors; lists become tuples, as tf.data wants them."""
    if isinstance(part, dict):
        return {name: _tensors(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return tuple(_tensors(value) for value in part)
    if type(part).__module__.startswith("pandas."):
        array = part.to_numpy()
        part = array[:, None] if array.ndim == 1 else array
    if type(part).__module__.startswith("scipy.sparse"):
        return _sparse_tensor(part.tocoo())
    if isinstance(part, np.ndarray):
        floating = np.issubdtype(part.dtype, np.floating)
        return tf.convert_to_tensor(part, dtype=tf.keras.backend.floatx() if floating else None)
    return tf.convert_to_tensor(part) if isinstance(part, tf.Variable) else part


def _sparse_tensor(matrix: Any) -> Any:
    floating = np.issubdtype(matrix.dtype, np.floating)
    values = matrix.data.astype(tf.keras.backend.floatx()) if floating else matrix.data
    indices = np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
    return tf.sparse.reorder(tf.SparseTensor(indices, values, matrix.shape))


def _has_python_state(dataset: Any) -> bool:
    """Return whether a Dataset reads from a Python generator, whose position no iterator's state contains."""
    for function in dataset._functions():
        graph = function.function.graph.as_graph_def()
        nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
        if any(node.op == "GeneratorDataset" for node in nodes):
            return True
    return any(_has_python_state(above) for above in dataset._inputs())
