"""A ``keras.utils.Sequence`` with how it is to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from det_native.errors import ArgumentError, InvalidDataError

GENERATOR_REFUSED = (
    "a generator, which has no length, cannot be read by several workers and cannot be shared among processes: wrap it "
    "by tf.data.Dataset.from_generator(), or make a tf.keras.utils.Sequence of it."
)


class SequenceAdapter:
    """A Sequence, and in which threads or processes its batches are made.

    Parameters
    ----------
    data : tf.keras.utils.Sequence
        Also accepted by the name `sequence`, which Determined's documents use as well.
    use_multiprocessing : bool
        Whether batches are made in processes; in threads otherwise.
    workers : int
        How many of them; 0 makes the batches in the thread of the training.
    max_queue_size : int
        Most batches that are ready ahead.

    Raises
    ------
    InvalidDataError
        If it is no Sequence.
    ArgumentError
        If a number makes no sense, or the Sequence is given twice.
    """

    def __init__(
        self,
        data: Any = None,
        use_multiprocessing: bool = False,
        workers: int = 1,
        max_queue_size: int = 10,
        *,
        sequence: Any = None,
    ) -> None:
        if data is not None and sequence is not None:
            raise ArgumentError("SequenceAdapter(): data and sequence are the same argument; give one of them.")
        found = sequence if data is None else data
        if isinstance(found, Iterator):
            raise InvalidDataError(f"SequenceAdapter() was given {GENERATOR_REFUSED}")
        if not isinstance(found, tf.keras.utils.Sequence):
            raise InvalidDataError(
                f"SequenceAdapter() takes a tf.keras.utils.Sequence, not {type(found).__name__}; a tf.data.Dataset or "
                "arrays are returned by the loader as they are."
            )
        if workers < 0 or max_queue_size < 1:
            raise ArgumentError(
                f"SequenceAdapter(): workers={workers} must be at least 0 and max_queue_size={max_queue_size} at least "
                "1."
            )
        self.sequence = found
        self.use_multiprocessing = use_multiprocessing
        self.workers = workers
        self.max_queue_size = max_queue_size

    def __len__(self) -> int:
        return len(self.sequence)
