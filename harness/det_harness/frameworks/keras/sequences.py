"""Batches by number: Sequences of the user's, and array-likes that are too big to become tensors."""

from __future__ import annotations

import logging
import pickle
import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.shares import Share
from det_native.keras.sources import DataSource
from det_native.keras.streams import GlobalState, global_state, same_states, seeded_state, swapped_state

logger = logging.getLogger("det_native")

# What a random state is for, as its last word of entropy.
_OF_ITEM, _OF_EPOCH_END = 0, 1


def permutation(seed: int, epoch: int, count: int, block: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return an order of `count` rows that follows from seed and epoch alone.

    With `block` above 1 whole blocks of rows are ordered, and the rows within each; a smaller last block stays last.
    """
    draw = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    if block == 1:
        return draw.permutation(count)
    whole = count // block * block
    rows = draw.permutation(np.arange(whole).reshape(-1, block), axis=0)
    return np.concatenate([draw.permuted(rows, axis=1).ravel(), whole + draw.permutation(count - whole)])


class Batches(ABC):
    """Batches by (epoch, number)."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the batches of one epoch."""

    @abstractmethod
    def get(self, epoch: int, number: int) -> Any:
        """Return a batch."""

    def epoch_ended(self, epoch: int) -> None:
        """Pass on that the epoch is over."""
        return

    def read_on(self, epoch: int, number: int, ahead: int) -> None:
        """Read batches past the end of an epoch, from `number` on, as Keras does where there are any, and drop them."""
        for surplus in range(number, min(number + ahead, len(self))):
            try:
                self.get(epoch, surplus)
            except Exception:  # noqa: BLE001 (nobody takes this batch: Keras would not raise it either)
                return

    @property
    def first(self) -> Any:
        """A batch to see its form, which is not taken."""
        return self.get(0, 0)

    def begin(self, epoch: int) -> None:
        """Prepare for an epoch, before several threads read it."""
        return

    def looked_at(self) -> None:
        """Keras has read the first batch to see its form."""
        return

    def all_read(self, epoch: int) -> None:
        """The last batch of an epoch is trained."""
        return

    def state(self, epoch: int) -> dict[str, Any] | None:
        """Return what :meth:`resume` needs to go on in an epoch; None where its number is enough."""
        return None

    def resume(self, state: Mapping[str, Any], epoch: int, number: int, lengths: EpochLengths) -> None:
        """Go on before batch `number` of an epoch, from what :meth:`state` has returned."""
        return


class SequenceBatches(Batches):
    """A ``keras.utils.Sequence``, in an order that follows from the trial's seed, or that plain Keras draws.

    What the Sequence keeps itself is noted at the beginning of each epoch. Within one, whoever goes on reads its items
    anew from there, if reading them has changed anything.

    Parameters
    ----------
    in_turn : bool
        Draw order and items from the stream of the source, one after another, as plain Keras.
    joins : bool
        Have the stream of each epoch begin with the random numbers of the process, and those go on where it ends.
        Not possible where data are read past the end of the epoch that is trained.
    isolate : bool
        Read every item with random numbers of its own: of the stream, or else such as follow from (seed, epoch, index),
        whichever thread reads it when. Not possible for several threads at a time.
    share : Share, optional
        Which of the batches are this rank's.
    surplus : int
        Batches that are read past the end of each epoch that is shorter than the data.
    """

    def __init__(
        self,
        source: DataSource,
        shuffle: bool,
        seed: int,
        *,
        in_turn: bool = False,
        joins: bool = False,
        isolate: bool = True,
        share: Share | None = None,
        surplus: int = 0,
    ) -> None:
        self._source = source
        self._surplus = surplus
        self._in_turn = in_turn and source.stream is not None
        self._sequence = source.sequence
        self._shuffle = shuffle
        self._seed = seed
        self._isolate = isolate
        self._share = share or Share()
        self._order: tuple[int, Any] = (-1, None)
        self._joins = self._in_turn and joins
        self._begun: dict[int, _Beginning] = {}
        self._present = 0

    def __len__(self) -> int:
        return self._share.batches(len(self._sequence))

    @property
    def first(self) -> Any:
        """The item that Keras reads to see its form."""
        return self._source.first

    def looked_at(self) -> None:
        """Keras has read the first item: what it has drawn is drawn from the random numbers of the process."""
        if self._joins:
            self._source.join()

    def get(self, epoch: int, number: int) -> Any:
        self.begin(epoch)
        place = number % len(self) * self._share.size + self._share.rank
        index = self._index(epoch, place % len(self._sequence))
        if not self._isolate:
            return self._sequence[index]
        with self._random_numbers(epoch, index, _OF_ITEM):
            return self._sequence[index]

    def all_read(self, epoch: int) -> None:
        """The last batch of an epoch is trained: what it has drawn is drawn from the random numbers of the process."""
        begun = self._begun.get(epoch)
        if self._joins and begun is not None and begun.stream is not None:
            self._source.join(begun.stream)

    def epoch_ended(self, epoch: int) -> None:
        self.begin(epoch)
        if self._joins:
            self._sequence.on_epoch_end()
        else:
            with self._random_numbers(epoch, 0, _OF_EPOCH_END):
                self._sequence.on_epoch_end()
        self._present = epoch + 1

    def state(self, epoch: int) -> dict[str, Any]:
        """Return what :meth:`resume` needs to go on in an epoch, or at its beginning; a later one may have begun."""
        noted = max((each for each in self._begun if each <= epoch), default=epoch)
        if noted < epoch == self._present:
            noted = epoch
        begun = self._begun.get(noted) or _Beginning(self._source.state(), None if self._joins else self._stream)
        read_anew = noted in self._begun and (self._present > epoch or self._has_changed(begun))
        return {
            "epoch": noted,
            "read_anew": read_anew,
            "stream": None if begun.stream is None else np.frombuffer(pickle.dumps(begun.stream), np.uint8),
            "own": np.frombuffer(begun.own, np.uint8),
        }

    def resume(self, state: Mapping[str, Any], epoch: int, number: int, lengths: EpochLengths) -> None:
        """Go on before batch `number` of an epoch, from what :meth:`state` has returned."""
        begun = self._present = int(state["epoch"])
        self._source.put_state(state["own"].tobytes())
        stream = None if state["stream"] is None else pickle.loads(state["stream"].tobytes())
        if self._in_turn and stream is not None:
            self._source.stream = stream
        self._begun.clear()
        joins, self._joins = self._joins, self._joins and stream is None
        again = number if state["read_anew"] or begun < epoch else 0
        if again or begun < epoch:
            logger.info("Reading the training data again from the beginning of epoch %d, to go on there.", begun + 1)
        if self._isolate:  # in which order several threads have read, nobody knows
            for passed in range(begun, epoch):
                steps = lengths.steps_of(passed)
                for each in range(steps):
                    self.get(passed, each)
                self.read_on(passed, steps, self._surplus)
                self.epoch_ended(passed)
            for each in range(again):
                self.get(epoch, each)
        if number:
            self.begin(epoch)
        self._joins = joins

    @property
    def _stream(self) -> GlobalState | None:
        return self._source.stream if self._in_turn else None

    def begin(self, epoch: int) -> None:
        """Note how an epoch begins, before anything of it is read."""
        if epoch in self._begun:
            return
        if self._joins:
            self._source.stream = global_state()
        self._begun = {each: begun for each, begun in self._begun.items() if each == epoch - 1}
        self._begun[epoch] = begun = _Beginning(self._source.state(), self._stream)
        self._present = epoch
        if self._in_turn and self._shuffle:
            order = [*range(len(self._sequence))]
            with self._random_numbers(epoch, 0, _OF_ITEM):
                random.shuffle(order)
            self._order = (epoch, order)
        begun.after_order = self._stream

    def _has_changed(self, begun: _Beginning) -> bool:
        """Return whether items that were read since the beginning of an epoch have changed anything."""
        if self._in_turn and not same_states(begun.after_order, self._source.stream):
            return True
        try:
            return self._source.state() != begun.own
        except RuntimeError:  # another thread is reading the next item
            return True

    @contextmanager
    def _random_numbers(self, epoch: int, index: int, purpose: int) -> Iterator[None]:
        stream = self._stream
        if stream is None:
            with swapped_state(seeded_state(self._seed, epoch, index, purpose)):
                yield
            return
        with swapped_state(stream) as ended:
            yield
        self._source.stream = ended[0]

    def _index(self, epoch: int, number: int) -> int:
        if not self._shuffle:
            return number
        if self._order[0] != epoch:
            self._order = (epoch, permutation(self._seed, epoch, len(self._sequence)))
        return int(self._order[1][number])


@dataclass
class _Beginning:
    """How an epoch has begun: what the Sequence kept, the stream, and that after its order was drawn."""

    own: bytes
    stream: GlobalState | None
    after_order: GlobalState | None = None


class ArrayBatches(Batches):
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


class View(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """What Keras reads: the batches of the present epoch, from where training stands.

    Several threads read ahead here instead of in Keras's own queue, which ends every epoch of threads with a wait of
    five seconds.

    Parameters
    ----------
    lengths : EpochLengths
        Of the training; where a fixed one is longer than the data, they start over.
    threads : int
        Threads that read ahead; up to 1 means that the reader itself reads.
    ahead : int
        Batches to read ahead at most.
    pass_on : bool
        Whether ``on_epoch_end`` of Keras's reaches the batches; otherwise their owner says when an epoch is over.
    looks_apart : bool
        Whether Keras's first read is a look at the form of a batch, which it reads once more.
    surplus : int
        Batches to read past the end of an epoch that is shorter than the data.
    """

    def __init__(
        self,
        batches: Batches,
        lengths: EpochLengths,
        *,
        threads: int = 1,
        ahead: int = 10,
        pass_on: bool = False,
        looks_apart: bool = False,
        surplus: int = 0,
    ) -> None:
        self._batches = batches
        self._lengths = lengths
        self._threads = threads
        self._ahead = ahead
        self._pass_on = pass_on
        self._epoch = 0
        self._offset = 0
        self._looks_apart = looks_apart
        self._surplus = surplus
        self._saved: Mapping[str, Any] | None = None
        self._last: Any = None
        self._pool: ThreadPoolExecutor | None = None
        self._reading: dict[int, Future[Any]] = {}
        self.error: BaseException | None = None

    def __len__(self) -> int:
        """Return the batches of the epoch, with those before its part where Keras asks anew at each beginning."""
        # Whatever has changed the length since: a callback, or what a checkpoint has put back.
        if self._pass_on and self._lengths.follow:
            self._lengths.begin(self._epoch, len(self._batches))
        return self._lengths.steps_of(self._epoch) if self._lengths.follow else self.remaining

    def look_again(self) -> None:
        """Keras is going to look at the form of a batch once more; that reads nothing."""
        self._looks_apart = True

    @property
    def remaining(self) -> int:
        """Batches of the epoch from where training stands."""
        return self._lengths.steps_of(self._epoch) - self._offset

    def __getitem__(self, number: int) -> Any:
        if self._looks_apart:
            self._looks_apart = False
            first = self.first
            self._batches.looked_at()
            return first
        if number >= self.remaining:
            return self._last  # Keras reads ahead, past the end of an epoch that it has not begun at its start
        item = self.read(number)
        if number == self.remaining - 1:
            self._last = item if self._offset else None
            if self._surplus:
                self._batches.read_on(self._epoch, number + self._offset + 1, self._surplus)
        return item

    @property
    def first(self) -> Any:
        """A batch to see its form, which is not taken."""
        try:
            return self._batches.first
        except BaseException as error:
            self.error = error
            raise

    def read(self, number: int) -> Any:
        """Return a batch by its number from where training stands."""
        if self._threads <= 1:
            return self._read(self._epoch, number + self._offset)
        if self._pool is None:
            self._batches.begin(self._epoch)
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="det-native-sequence")
        for wanted in range(number, min(number + 1 + self._ahead, self.remaining)):
            if wanted not in self._reading:
                self._reading[wanted] = self._pool.submit(self._read, self._epoch, wanted + self._offset)
        return self._reading.pop(number).result()

    def on_epoch_end(self) -> None:
        """Take Keras's word for the end of an epoch only if asked to: its queues give it more than once."""
        if self._pass_on:
            self.begin_epoch(self._epoch)

    def start(self, batches: int) -> None:
        """Go to the batch after the first `batches` of all.

        Without what was saved for that, the user's Sequence hears of the epochs before.
        """
        saved, self._saved = self._saved, None
        epoch, self._offset = self._lengths.place(batches)
        if saved is not None:
            _ = self._batches.first  # Keras reads it before the first epoch
            self._batches.resume(saved, epoch, self._offset, self._lengths)
        else:
            for passed in range(self._epoch, epoch):
                self._batches.epoch_ended(passed)
        self._epoch = epoch

    def all_read(self) -> None:
        """The last batch of the epoch is trained."""
        self._batches.all_read(self._epoch)

    def begin_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch that follows on the present one."""
        self.close()
        self._batches.epoch_ended(self._epoch)
        self._epoch, self._offset, self._last = epoch, 0, None
        self._lengths.begin(epoch, now := len(self._batches))
        if self._lengths.as_first and now != self._lengths.steps:
            self._lengths.as_first = False
            warnings.warn(
                f"The training data have {now} batches now; every epoch trains the {self._lengths.steps} batches "
                "that the first one had. Pass steps_per_epoch to fit() for another number.",
                UserWarning,
                stacklevel=2,
            )

    def state(self, batches: int) -> dict[str, Any] | None:
        """Return what :meth:`restore` needs in a process that goes on after `batches` batches; None for nothing."""
        epoch, _ = self._lengths.place(batches)
        state = self._batches.state(epoch)
        return None if state is None else {**state, "lengths": self._lengths.state(epoch)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what was saved, for :meth:`start`."""
        self._saved = state
        self._lengths.restore(state["lengths"])

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
