"""Arrays as batches: a tf.data pipeline whose order follows from (seed, epoch), and that starts at any batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.sequences import permutation
from det_harness.frameworks.keras.shares import Share
from det_native.keras.data import Data, is_of_pandas
from det_native.keras.generations import NUMBER

_FOREVER = np.iinfo(np.int64).max


def packed(data: Data) -> Any:
    """Return what Keras makes a batch of: `x` as it is, or ``(x, y)`` or ``(x, y, sample_weight)``.

    Floats have Keras's precision, and no weights are missing. Several inputs alone are a tuple of one, so that
    they are not taken for inputs and targets.
    """
    if data.sample_weight is not None:
        weights = _complete(data.sample_weight, int(data.records or 0))
        return tuple(tensors(part) for part in (data.x, data.y, weights))
    if data.y is not None:
        return tensors(data.x), tensors(data.y)
    x = tensors(data.x)
    return (x,) if isinstance(x, tuple) else x


def array_batches(
    rows: Any,
    records: int,
    batch_size: int,
    *,
    shuffle: bool | str = False,
    seed: int = 0,
    first_batch: int = 0,
    epochs: int = _FOREVER,
    share: Share | None = None,
    own: int | None = None,
    as_in_keras: bool = False,
) -> tf.data.Dataset:
    """Return batches of arrays, epoch after epoch, from batch number `first_batch` of all.

    Parameters
    ----------
    rows : structure of tensors
        Their first dimension is `records`.
    shuffle : bool or "batch"
        True orders the rows of every epoch anew; ``"batch"`` orders whole batches, and the rows within each.
    share : Share, optional
        The rank's part of every batch; `batch_size` is its own. By default all.
    own : int, optional
        Rows of this rank in an epoch; by default so many that it has as many batches as all others.
    as_in_keras : bool
        Order all rows as Keras does, from TensorFlow's global seed instead of `seed`; all ranks have the same.
    """
    share = share or Share()
    per_epoch = share.batches(records, batch_size)
    own = share.padded(records, batch_size) if own is None else own
    rest = own % batch_size
    block = batch_size * share.size if shuffle == "batch" else 1

    def order(epoch: Any) -> Any:
        if not shuffle:
            return tf.constant(share.rows(np.arange(records), own))
        return part(tf.numpy_function(lambda number: permutation(seed, int(number), records, block), [epoch], tf.int64))

    def part(whole: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(lambda rows: share.rows(rows, own), [whole], tf.int64), [own])

    def cut(indices: Any, skipped: int = 0) -> tf.data.Dataset:
        # All sizes are known beforehand: tf.data cuts rows of one shape faster than rows it must measure.
        parts = []
        if (whole := own // batch_size - skipped) > 0:
            of_whole_batches = indices[skipped * batch_size : own - rest]
            parts.append(tf.data.Dataset.from_tensor_slices(tf.reshape(of_whole_batches, [whole, batch_size])))
        if rest:
            parts.append(tf.data.Dataset.from_tensors(indices[own - rest :]))
        return parts[0] if len(parts) == 1 else parts[0].concatenate(parts[1])

    def epochs_from(first: int, last: int, skipped: int = 0) -> tf.data.Dataset:
        # One permutation ahead is enough, and several at once would get in each other's way.
        whole, own_part = (keras_orders(records, first, last), part) if as_in_keras else (range_of(first, last), order)
        orders = whole.map(plain(own_part)).prefetch(1)
        return orders.flat_map(plain(lambda indices: cut(indices, skipped)))

    def gather(indices: Any) -> Any:
        return tf.nest.map_structure(lambda array: tf.gather(array, indices, axis=0), rows)

    plain, range_of = tf.autograph.experimental.do_not_convert, tf.data.Dataset.range
    start, skipped = divmod(first_batch, per_epoch)
    end = _FOREVER if epochs == _FOREVER else start + epochs
    indices = epochs_from(start, end)
    if skipped:
        indices = epochs_from(start, start + 1, skipped).concatenate(epochs_from(start + 1, end))
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    # One batch after the other, ahead of the training: gathering uses several threads by itself, and calls in
    # parallel would take more of the processors' time from the training than they give.
    return indices.map(plain(gather)).with_options(options).prefetch(tf.data.AUTOTUNE)


def keras_orders(records: int, first: int, last: int = _FOREVER) -> tf.data.Dataset:
    """Return the orders in which Keras reads so many rows in the epochs from `first` on, before `last`.

    They are what one operation draws again and again, with the global seed and as the first of its function. So those
    of earlier epochs are drawn, too. Keras 3 makes the operation anew for each epoch: with a seed, all have one order.
    """

    def order(_: Any) -> Any:
        return tf.random.shuffle(tf.range(records, dtype=tf.int64))

    epochs, plain = tf.data.Dataset.range, tf.autograph.experimental.do_not_convert
    if NUMBER == 2:
        return epochs(last).map(plain(order)).skip(first)
    of_all = next(iter(epochs(1).map(plain(order))))
    return epochs(first, last).map(plain(lambda _: of_all))


def _complete(sample_weight: Any, records: int) -> Any:
    """Fill in ones for outputs without weights, as Keras does."""
    if isinstance(sample_weight, dict):
        return {name: np.ones(records) if part is None else part for name, part in sample_weight.items()}
    if isinstance(sample_weight, list | tuple):
        return [np.ones(records) if part is None else part for part in sample_weight]
    return sample_weight


def tensors(part: Any) -> Any:
    """Return a structure of tensors; lists become tuples, as tf.data wants them."""
    if isinstance(part, dict):
        return {name: tensors(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return tuple(tensors(value) for value in part)
    if is_of_pandas(part):
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
