"""How training data reach Keras's loop, so that any batch of a trial can be reached again after a restart.

The order of arrays is a pure function of (trial seed, epoch); of a Sequence, what it keeps at the beginning of each
epoch is saved, and of a Dataset the iterator (``dataset_feed.py``); a generator is pulled again from its start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.arrays import array_batches, packed
from det_harness.frameworks.keras.dataset_feed import DatasetFeed
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.feed import Feed
from det_harness.frameworks.keras.sequences import ArrayBatches, SequenceBatches, View
from det_harness.frameworks.keras.shares import Share
from det_harness.trial import state_files
from det_native.keras.data import Data, Kind
from det_native.keras.generations import BACKEND, NUMBER, internals
from det_native.keras.native import QUEUE_ARGUMENTS, FitCall
from det_native.keras.sources import DataSource
from det_native.keras.values import number_of
from det_native.process.tensorflow_ import global_seed
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

_END = object()
_SEQUENCE = "sequence"


def make_feed(call: FitCall, environment: TrialEnvironment, lengths: EpochLengths) -> Feed:
    """Make the feed for the training data of a call.

    Parameters
    ----------
    environment : TrialEnvironment
        Its trial seed orders the data, its batch size cuts them, and each of its ranks has a share of every batch.
    """
    data, shuffle, seed = call.training, call.arguments["shuffle"], environment.trial_seed
    share = Share.of(environment)
    if data.kind is Kind.GENERATOR:
        return _GeneratorFeed(call, share)
    if data.kind is Kind.DATASET:
        in_one_pass = internals.takes_several_batches(call.model)
        weights, steps = call.arguments["class_weight"], call.arguments["steps_per_epoch"]
        return DatasetFeed(data.x, in_one_pass=in_one_pass, class_weight=weights, steps=steps)
    batch_size = call.per_slot_batch_size(environment) if data.kind.indexed else 0
    if data.kind is Kind.ARRAYS:
        return _ArrayFeed(data, batch_size, shuffle, seed, share, as_in_keras=ordered_as_in_keras(call))
    if data.kind is Kind.SPARSE:
        rows = tf.data.Dataset.from_tensor_slices(packed(data))
        rows = rows.shuffle(int(data.records or 0), seed) if shuffle else rows
        rows = rows.shard(share.size, share.rank).batch(batch_size)
        in_one_pass = internals.takes_several_batches(call.model)
        return DatasetFeed(rows, in_one_pass=in_one_pass, class_weight=call.arguments["class_weight"])
    if data.kind is Kind.ARRAY_LIKES:
        rows = ArrayBatches(packed(data), int(data.records or 0), batch_size, shuffle, seed, share=share)
        return IndexedFeed(call, View(rows, lengths))
    in_turn = call.as_in_keras and share.size == 1
    view = view_of_sequence(
        *(call.arguments, call.source, lengths),
        shuffle=bool(shuffle),
        seed=seed,
        share=share,
        in_turn=in_turn,
        follows_training=NUMBER == 2,
    )
    return IndexedFeed(call, view)


def ordered_as_in_keras(call: FitCall) -> bool:
    """Return whether Keras's own order of rows can be had, and is wanted: from a seed of the program, the slots' too.

    With ``shuffle="batch"`` Keras draws within a buffer whose state is not at hand. Keras 3 orders all epochs alike if
    there is a seed; where only ``init()`` has set one, a plain run would have none.
    """
    if not call.as_in_keras or call.arguments["shuffle"] is not True:
        return False
    seed = global_seed()
    if NUMBER == 2:
        return seed is not None
    return BACKEND == "tensorflow" and seed not in (None, call.context.env.trial_seed)


def is_idle_last(call: FitCall, environment: TrialEnvironment, steps: int) -> bool:
    """Return whether a rank has nothing of its own in the last batch of each epoch of so many batches."""
    share, data = Share.of(environment), call.training
    if data.kind in (Kind.ARRAYS, Kind.ARRAY_LIKES):
        records, batch_size = int(data.records or 0), call.per_slot_batch_size(environment)
    elif data.kind is Kind.SEQUENCE:
        records, batch_size = len(data.x), 1
    else:
        return False
    return steps == share.batches(records, batch_size) and share.is_idle_last(records, batch_size)


def only_the_last_is_smaller(call: FitCall, environment: TrialEnvironment) -> bool:
    """Return whether it is known that all batches of an epoch but the last one have one size."""
    data, steps, share = call.training, call.steps_per_epoch(environment), Share.of(environment)
    if data.kind.indexed:
        return steps == share.batches(int(data.records or 0), call.per_slot_batch_size(environment))
    if data.kind is Kind.SEQUENCE:
        return steps == share.batches(len(data.x)) and not call.arguments["shuffle"]
    return data.kind is Kind.DATASET and steps == number_of(data.x.cardinality())


class _ArrayFeed(Feed):
    """Arrays and tensors: where the data stand follows from the number of batches alone."""

    def __init__(
        self, data: Data, batch_size: int, shuffle: bool | str, seed: int, share: Share, *, as_in_keras: bool
    ) -> None:
        self._rows = packed(data)
        self._records = int(data.records or 0)
        self._batch_size = batch_size
        self._shuffle = shuffle.lower() if isinstance(shuffle, str) else shuffle
        self._seed = seed
        self._share = share
        self._as_in_keras = as_in_keras

    def arguments(self, batches: int) -> dict[str, Any]:
        dataset = array_batches(
            self._rows,
            self._records,
            self._batch_size,
            shuffle=self._shuffle,
            seed=self._seed,
            first_batch=batches,
            share=self._share,
            as_in_keras=self._as_in_keras,
        )
        return {"x": dataset}

    def first(self) -> Any:
        return tf.nest.map_structure(lambda array: array[: self._batch_size], self._rows)


class IndexedFeed(Feed):
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
        return {"x": self._view, **queue_arguments(self._call.arguments, threads=False)}

    def first(self) -> Any:
        return self._view.first

    def all_read(self) -> None:
        self._view.all_read()

    def epoch_ended(self, epochs_done: int) -> None:
        self._view.begin_epoch(epochs_done)

    def restore(self, folder: Path) -> None:
        restore_view(self._view, folder)

    def save(self, folder: Path, batches: int) -> None:
        save_view(self._view, folder, batches)

    def close(self) -> None:
        """End the threads of the view."""
        self._view.close()


class _GeneratorFeed(Feed):
    """A generator: what was trained on before a restart is pulled again and dropped."""

    def __init__(self, call: FitCall, share: Share) -> None:
        self._call = call
        self._stream = call.training.x
        self._share = share

    @property
    def error(self) -> BaseException | None:
        """What the generator raised."""
        error: BaseException | None = self._stream.error
        return error

    def arguments(self, batches: int) -> dict[str, Any]:
        if batches:
            pulled = batches * self._share.size
            logger.info("Pulling the first %d batches of the generator again, to continue after them.", pulled)
            self._stream.skip(pulled)
        stream = self._stream if self._share.size == 1 else self._of_rank()
        # One thread at a time can read a generator; validation data beside it are to be read in order.
        return {"x": stream, **queue_arguments(self._call.arguments, threads=False)}

    def _of_rank(self) -> Iterator[Any]:
        """Yield this rank's batches: all ranks pull the same ones, and each keeps its own of every so many."""
        while True:
            together = [next(self._stream, _END) for _ in range(self._share.size)]
            if any(each is _END for each in together):
                return
            yield together[self._share.rank]

    def first(self) -> Any:
        return self._stream.peek()


def restore_view(view: View, folder: Path) -> None:
    """Have a view take what :func:`save_view` has written into a checkpoint."""
    if (folder / f"{_SEQUENCE}.json").exists():  # an earlier version has written none
        view.restore(state_files.load(folder, _SEQUENCE))


def save_view(view: View, folder: Path, batches: int) -> None:
    """Write into a checkpoint what a view needs to go on after `batches` batches."""
    state = view.state(batches)
    if state is not None:
        state_files.dump(folder, _SEQUENCE, state)


def queue_arguments(given: Mapping[str, Any], *, threads: bool = True) -> dict[str, Any]:
    """Return the arguments for Keras's queues; with `threads` False, for data that read ahead themselves."""
    arguments = {name: given[name] for name in QUEUE_ARGUMENTS}
    if not threads and threads_of(given) > 1:
        arguments["workers"] = 1
    return arguments


def threads_of(given: Mapping[str, Any]) -> int:
    """Return in how many threads batches are made, by the arguments for Keras's queues."""
    return 1 if given["use_multiprocessing"] else int(given["workers"])


def surplus_of(queue: Mapping[str, Any]) -> int:
    """Return how many batches Keras 2 reads past the end of an epoch that is shorter than the data.

    Its pipeline holds one batch in each of its two buffers, or has one buffer without workers. That a thread has begun
    with a third or has not yet filled the second when the epoch ends is chance, in Keras. Queues of several threads or
    processes read in no certain order.
    """
    if threads_of(queue) > 1 or queue["use_multiprocessing"]:
        return 0
    return 2 if queue["workers"] else 1


def view_of_sequence(
    queue: Mapping[str, Any],
    source: DataSource,
    lengths: EpochLengths,
    *,
    shuffle: bool = False,
    seed: int = 0,
    pass_on: bool = False,
    share: Share | None = None,
    in_turn: bool = False,
    follows_training: bool = False,
) -> View:
    """Return a view of a Sequence that is read by the arguments for Keras's queues.

    With `in_turn` its order and its items draw random numbers as plain Keras's do; other processes cannot. If it
    `follows_training`, Keras reads the view itself: after a look at the form of a batch, epoch by epoch.
    """
    threads = threads_of(queue)
    in_turn = in_turn and not queue["use_multiprocessing"]
    surplus = surplus_of(queue) if follows_training and (share is None or share.size == 1) else 0
    reading: dict[str, Any] = {"in_turn": in_turn, "joins": follows_training, "isolate": threads <= 1}
    batches = SequenceBatches(source, shuffle, seed, **reading, share=share, surplus=surplus)
    ahead = queue["max_queue_size"]
    how: dict[str, Any] = {"threads": threads, "ahead": ahead, "pass_on": pass_on, "surplus": surplus}
    return View(batches, lengths, **how, looks_apart=follows_training)
