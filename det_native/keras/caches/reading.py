"""The records of a cache as a Dataset, in any order. TensorFlow reads them by itself: its iterators can be saved."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from det_native.errors import StorageError
from det_native.keras.caches.order import Order, numbers_in_order
from det_native.keras.caches.records import from_record
from det_native.keras.caches.store import Records

# What this process reads, so that an error of TensorFlow's, which names no file, can be told with its cache.
_read: weakref.WeakValueDictionary[str, Records] = weakref.WeakValueDictionary()


def read(records: Records, order: Order, seed: int, rank: int = 0, size: int = 1) -> tf.data.Dataset:
    """Return one process's share of the records, as a Dataset of known length.

    Parameters
    ----------
    seed : int
        The trial's.
    rank, size : int
        Which process of the trial this is, and how many there are.
    """
    offsets, path = tf.constant(records.offsets), str(records.path)
    plain = tf.autograph.experimental.do_not_convert

    def one(number: Any) -> tf.data.Dataset:
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=[path],
            compression_type="",
            buffer_size=tf.constant(0, tf.int64),  # a record and no more: the next one lies elsewhere
            byte_offsets=offsets[number][tf.newaxis],
            metadata="",
        )
        return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.string)).take(1)

    count = len(range(rank, len(records), size))
    dataset = numbers_in_order(len(records), order, seed, rank, size).flat_map(plain(one))
    dataset = dataset.map(plain(lambda record: from_record(record, records.spec)))
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    _read.pop(str(records.folder), None)  # the last one read is the last one here
    _read[str(records.folder)] = records
    vars(dataset)[_MARK] = records
    return dataset


def records_of(dataset: Any) -> Records | None:
    """Return what a Dataset reads if :func:`read` has returned this very one."""
    found: Records | None = vars(dataset).get(_MARK)
    return found


def damage_behind(error: BaseException) -> StorageError | None:
    """Return what to tell instead of an error of TensorFlow's, if a cache that this process reads is damaged.

    The cache is given up: whoever asks for it next writes it again.
    """
    if not isinstance(error, tf.errors.OpError):
        return None
    # Those of the trial that runs come first: those of earlier ones may be gone by now, and nobody minds.
    for records in reversed(list(_read.values())):
        problem = records.problem()
        if problem is not None:
            records.give_up()
            return StorageError(
                f"The {records.name} is damaged: {problem}. It is written again by the next trial, or restart of this "
                "one, that asks for it."
            )
    return None


_MARK = "_det_native_records"
