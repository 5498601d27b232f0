"""In which order the records of a cache are read: a permutation of their numbers that is computed, and never stored.

Nothing here calls Python, so that an iterator's state can be saved at any record.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import tensorflow as tf

# Beside the trial's seed, which may be 0: TensorFlow takes two zeros for "any".
_SECOND_SEED = 24
_WORD = 2**31


class Order(Enum):
    """How often the records are put into another order."""

    AS_WRITTEN = "as written"
    SHUFFLED_ONCE = "shuffled once"
    SHUFFLED_EACH_EPOCH = "shuffled each epoch"


def numbers_in_order(count: int, order: Order, seed: int, rank: int = 0, size: int = 1) -> tf.data.Dataset:
    """Return the numbers of the records that one process of a trial reads in an epoch.

    All processes of a trial put the records into the same order, and each takes every `size`-th of them.

    Parameters
    ----------
    count : int
        Records in the cache.
    seed : int
        The trial's.
    rank, size : int
        Which process this is, and how many there are.
    """
    positions = tf.data.Dataset.range(rank, count, size)
    if order is Order.AS_WRITTEN:
        return positions
    if order is Order.SHUFFLED_ONCE:
        return positions.map(_shuffler(count, tf.constant(_words(seed))))
    return _number_of_each_epoch(seed).flat_map(
        _plain(lambda number: positions.map(_shuffler(count, tf.stack([number % _WORD, number // _WORD % _WORD]))))
    )


def _number_of_each_epoch(seed: int) -> tf.data.Dataset:
    """Return a Dataset of one number, which is another one each time that the Dataset is iterated over."""
    variant = tf.raw_ops.RandomDatasetV2(
        seed=tf.constant(seed, tf.int64),
        seed2=tf.constant(_SECOND_SEED, tf.int64),
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        rerandomize_each_iteration=True,
        output_types=[tf.int64],
        output_shapes=[[]],
        metadata="",
    )
    return tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64)).take(1)


def _shuffler(count: int, words: Any) -> Any:
    def shuffled(position: Any) -> Any:
        found = tf.random.experimental.index_shuffle(position, words, tf.constant(count - 1, tf.int64))
        return tf.cast(found, tf.int64)

    return _plain(shuffled)


def _words(seed: int) -> list[int]:
    return [int(word) for word in np.random.SeedSequence([seed, _SECOND_SEED]).generate_state(2) % _WORD]


# AutoGraph would write a source file of the function into the temporary folder.
_plain = tf.autograph.experimental.do_not_convert
