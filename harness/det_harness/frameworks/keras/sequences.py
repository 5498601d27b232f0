"""Batches by number: Sequences of the user's, and array-likes that are too big to become tensors."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.shares import Share
from det_native.keras.streams import seeded_state, swapped_state

# What a random state is for, as its last word of entropy.
_OF_ITEM, _OF_EPOCH_END = 0, 1


def permutation(seed: int, epoch: int, count: int, block: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return an order of `count` rows that follows from seed and epoch alone.

    With `block` above 1 whole blocks of rows are ordered, and the rows within each; a smaller last block stays last.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    if block == 1:
        return random.permutation(count)
    whole = count // block * block
    rows = random.permutation(np.arange(whole).reshape(-1, block), axis=0)
    return np.concatenate([random.permuted(rows, axis=1).ravel(), whole + random.permutation(count - whole)])


class Batches(Protocol):
    """Batches by (epoch, number)."""

    def __len__(self) -> int:
        """Return the batches of one epoch."""

    def get(self, epoch: int, number: int) -> Any:
        """Return a batch."""

    def epoch_ended(self, epoch: int) -> None:
        """Pass on that the epoch is over."""


class SequenceBatches:
    """A ``keras.utils.Sequence``, in an order that follows from the trial's seed.

    Parameters
    ----------
    isolate : bool
        Read every item with random numbers that follow from (seed, epoch, index), whichever thread reads it when. Not
        possible for several threads at a time.
    share : Share, optional
        Which of the batches are this rank's.
    """

    def __init__(self, sequence: Any, shuffle: bool, seed: int, *, isolate: bool, share: Share | None = None) -> None:
        self._sequence = sequence
        self._shuffle = shuffle
        self._seed = seed
        self._isolate = isolate
        self._share = share or Share()
        self._order: tuple[int, Any] = (-1, None)

    def __len__(self) -> int:
        return self._share.batches(len(self._sequence))

    def get(self, epoch: int, number: int) -> Any:
        place = number % len(self) * self._share.size + self._share.rank
        index = self._index(epoch, place % len(self._sequence))
        if not self._isolate:
            return self._sequence[index]
        with swapped_state(seeded_state(self._seed, epoch, index, _OF_ITEM)):
            return self._sequence[index]

    def epoch_ended(self, epoch: int) -> None:
        with swapped_state(seeded_state(self._seed, epoch, 0, _OF_EPOCH_END)):
            self._sequence.on_epoch_end()

    def _index(self, epoch: int, number: int) -> int:
        if not self._shuffle:
            return number
        if self._order[0] != epoch:
            self._order = (epoch, permutation(self._seed, epoch, len(self._sequence)))
        return int(self._order[1][number])


class ArrayBatches:
    """Rows of array-likes (an HDF5 dataset, say), read in ascending order and put into the shuffled one."""

    def __init__(
        self,
        rows: Any,
        records: int,
        batch_size: int,
        shuffle: bool | str,
        seed: int,
        *,
        share: Share | None = None,
        own: int | None = None,
    ) -> None:
        self._share = share or Share()
        self._own = self._share.padded(records, batch_size) if own is None else own
        self._rows = rows
        self._records = records
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._seed = seed
        self._order: tuple[int, Any] = (-1, None)

    def __len__(self) -> int:
        return -(-self._own // self._batch_size)

    def get(self, epoch: int, number: int) -> Any:
        start = number % len(self) * self._batch_size
        stop = min(start + self._batch_size, self._own)
        if not self._shuffle and self._share.size == 1:
            return tf.nest.map_structure(lambda array: np.asarray(array[start:stop]), self._rows)
        if self._order[0] != epoch:
            block = self._batch_size * self._share.size if self._shuffle == "batch" else 1
            shuffled = permutation(self._seed, epoch, self._records, block) if self._shuffle else None
            whole = np.arange(self._records) if shuffled is None else shuffled
            self._order = (epoch, self._share.rows(whole, self._own))
        wanted = self._order[1][start:stop]
        ascending = np.sort(wanted)
        back = np.searchsorted(ascending, wanted)
        return tf.nest.map_structure(lambda array: np.asarray(array[ascending])[back], self._rows)

    def epoch_ended(self, epoch: int) -> None:
        """Nobody wants to know."""


class View(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """What Keras reads: the batches of the present epoch, from where training stands.

    Several threads read ahead here instead of in Keras's own queue, which ends every epoch of threads with a wait of
    five seconds.

    Parameters
    ----------
    batches : Batches
    steps : int
        Batches of an epoch of training; more than there are start over.
    threads : int
        Threads that read ahead; up to 1 means that the reader itself reads.
    ahead : int
        Batches to read ahead at most.
    pass_on : bool
        Whether ``on_epoch_end`` of Keras's reaches the batches; otherwise their owner says when an epoch is over.
    """

    def __init__(
        self, batches: Batches, steps: int, *, threads: int = 1, ahead: int = 10, pass_on: bool = False
    ) -> None:
        self._batches = batches
        self._steps = steps
        self._threads = threads
        self._ahead = ahead
        self._pass_on = pass_on
        self._epoch = 0
        self._offset = 0
        self._pool: ThreadPoolExecutor | None = None
        self._reading: dict[int, Future[Any]] = {}
        self.error: BaseException | None = None

    def __len__(self) -> int:
        return self._steps - self._offset

    def __getitem__(self, number: int) -> Any:
        if self._threads <= 1:
            return self._read(self._epoch, number + self._offset)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="det-native-sequence")
        for wanted in range(number, min(number + 1 + self._ahead, len(self))):
            if wanted not in self._reading:
                self._reading[wanted] = self._pool.submit(self._read, self._epoch, wanted + self._offset)
        return self._reading.pop(number).result()

    def on_epoch_end(self) -> None:
        """Take Keras's word for the end of an epoch only if asked to: its queues give it more than once."""
        if self._pass_on:
            self.begin_epoch(self._epoch)

    def start(self, batches: int) -> None:
        """Go to the batch after the first `batches` of all; the user's Sequence hears of the epochs before."""
        epoch, self._offset = divmod(batches, self._steps)
        for passed in range(self._epoch, epoch):
            self._batches.epoch_ended(passed)
        self._epoch = epoch

    def begin_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch that follows on the present one."""
        self.close()
        self._batches.epoch_ended(self._epoch)
        self._epoch, self._offset = epoch, 0

    def close(self) -> None:
        """End the reading ahead; it begins again with the next batch."""
        self._reading.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _read(self, epoch: int, number: int) -> Any:
        try:
            return self._batches.get(epoch, number)
        except BaseException as error:
            self.error = error
            raise
