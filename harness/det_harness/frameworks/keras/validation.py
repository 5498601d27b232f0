"""How validation data reach Keras's loop; a generator goes on where it stood before a restart."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras.arrays import array_batches, packed
from det_harness.frameworks.keras.data import queue_arguments, surplus_of, threads_of
from det_harness.frameworks.keras.dataset_feed import empty_batch
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.sequences import ArrayBatches, Batches, SequenceBatches, View
from det_harness.frameworks.keras.shares import Share
from det_harness.trial import state_files
from det_native.errors import InvalidDataError
from det_native.keras import shuffles
from det_native.keras.data import Data, Kind
from det_native.keras.native import FitCall
from det_native.keras.sources import DataSource
from det_native.keras.streams import ReplayableStream
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")

_FILE = "validation"
_SEQUENCE = "validation_sequence"


class ValidationFeed:
    """The validation data of one run.

    Parameters
    ----------
    most : int, optional
        Batches of one validation at most.

    Attributes
    ----------
    x
        What Keras reads; None without validation data.
    steps : int or None
        Batches of one validation; None for all.
    """

    def __init__(self, call: FitCall, environment: TrialEnvironment, most: int | None = None) -> None:
        self._call = call
        self._stream: StreamBatches | None = None
        self._source: DataSource | None = None
        self._share = Share.of(environment)
        self._count: Callable[[], bool] = lambda: True
        self.x: Any = None
        self.steps: int | None = None
        data, steps = call.validation, call.arguments["validation_steps"]
        if data is None:
            return
        self.steps = steps if most is None else min(steps or most, most)
        self.x = self._batches(data, call.per_slot_batch_size(environment) if data.kind.indexed else 0, steps)

    def _batches(self, data: Data, batch_size: int, steps: int | None) -> Any:
        call, share = self._call, self._share
        if data.kind.indexed:
            return self._indexed(data, batch_size)
        if data.kind is Kind.SEQUENCE:
            return self._sequence(data.x, steps)
        if data.kind is Kind.DATASET and share.size > 1 and int(data.x.cardinality()) == 0:
            self._count = lambda: False
            return tf.data.Dataset.from_tensors(empty_batch(data.x))
        if data.kind is Kind.GENERATOR:
            self._count = lambda: share.rank == 0  # each pulls the same batches
        if data.kind is Kind.GENERATOR and self.steps is not None and not call.validation_queue["use_multiprocessing"]:
            self._stream = StreamBatches(data.x, int(self.steps))
            return View(self._stream, EpochLengths(int(self.steps)), pass_on=True)
        if data.kind is Kind.GENERATOR:
            logger.warning(
                "The validation data are a generator %s: after a restart it starts again, so validations may see other "
                "batches than they would have.",
                "without validation_steps" if self.steps is None else "read with use_multiprocessing=True",
            )
        return data.x

    def _sequence(self, sequence: Any, steps: int | None) -> View:
        """Return a view of a Sequence, which draws the random numbers of the process, as in Keras.

        On several slots each rank reads its part, with random numbers of their own for each batch.
        """
        queue, share = self._call.validation_queue, self._share
        reading: dict[str, Any] = {"threads": threads_of(queue), "ahead": queue["max_queue_size"]}
        self._source = source = DataSource(
            sequence, apart=share.size > 1, kept_elsewhere=[*self._call.trained_parts, *self._call.callbacks()]
        )
        source.look()
        batches: Batches = _InOrder(source)
        if share.size > 1:
            batches = _OwnPart(source, False, 0, isolate=threads_of(queue) <= 1, share=share)
            self.steps = None
            self._count = lambda: share.own(steps or len(sequence)) > 0
            steps = steps and max(share.own(steps), 1)
        else:
            reading["surplus"] = surplus_of(queue)
        lengths = EpochLengths(steps or len(batches), follow=steps is None)
        return View(batches, lengths, **reading, pass_on=True, looks_apart=True)

    def _indexed(self, data: Data, batch_size: int) -> Any:
        """Return batches of rows: of the size asked for, or of ``validation_steps`` as Keras, or as in training."""
        records, share = int(data.records or 0), self._share
        size = validation_batch_size(self._call, records, batch_size, share.size)
        self._count = lambda: share.own(records) > 0
        own = share.own(records) or 1
        batches = math.ceil(own / size)
        if self.steps is not None and share.size > 1:
            self.steps = min(self.steps, batches)
        if data.kind is Kind.ARRAYS:
            known = tf.data.experimental.assert_cardinality(batches)
            return array_batches(packed(data), records, size, epochs=1, share=share, own=own).apply(known)
        if data.kind is Kind.SPARSE:
            rows = tf.data.Dataset.from_tensor_slices(packed(data))
            return (rows.shard(share.size, share.rank) if self.counts else rows.take(1)).batch(size)
        return View(ArrayBatches(packed(data), records, size, False, 0, share=share, own=own), EpochLengths(batches))

    @property
    def counts(self) -> bool:
        """Whether what this rank validates on is its own part of the data; otherwise it counts nothing."""
        return self._count()

    @property
    def error(self) -> BaseException | None:
        """What reading a batch raised, if it was read in this process; TensorFlow passes on only its text."""
        return self.x.error if isinstance(self.x, View) else None

    @property
    def read_apart(self) -> bool:
        """Whether other threads or processes are to read it than the training data; Keras knows one way for both."""
        call = self._call
        own = any(call.arguments[name] != value for name, value in call.validation_queue.items())
        return own and call.validation is not None and call.validation.kind is Kind.SEQUENCE

    def arguments(self) -> dict[str, Any]:
        """Return arguments of ``evaluate``."""
        return {} if self.x is None else {"x": self.x, "steps": self.steps, **self.queue_arguments()}

    def queue_arguments(self) -> dict[str, Any]:
        """Return the arguments for Keras's queues."""
        return queue_arguments(self._call.validation_queue, threads=not isinstance(self.x, View))

    def expect_look(self) -> None:
        """Keras is going to look at the first item of a Sequence, as whenever it makes a pipeline of it."""
        if self._source is not None and isinstance(self.x, View):
            self.x.look_again()

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Have the data keep what they kept before the block, in which they are read when Keras would not read them."""
        data = self._call.validation
        if data is not None and data.kind is Kind.DATASET:
            drawn = shuffles.places(data.x)
            yield
            shuffles.put_places(data.x, drawn)
            return
        if self._source is None:
            yield
            return
        with self._source.preserved():
            yield

    def save(self, folder: Path) -> None:
        """Write into a checkpoint what :meth:`restore` needs."""
        if self._stream is not None:
            state_files.dump(folder, _FILE, {"taken": self._stream.taken})
        if self._source is not None:
            save_source(self._source, folder)

    def restore(self, folder: Path) -> None:
        """Bring a generator, or what a Sequence keeps, to where it was when the folder was written."""
        if self._source is not None:
            restore_source(self._source, folder)
        if self._stream is None:
            return
        try:
            taken = state_files.load(folder, _FILE)["taken"]
        except FileNotFoundError:  # written by an earlier version
            return
        logger.info("Pulling the first %d batches of the validation generator again, to continue after them.", taken)
        self._stream.skip(taken)

    def close(self) -> None:
        """End what reads ahead."""
        if isinstance(self.x, View):
            self.x.close()


def save_source(source: DataSource, folder: Path) -> None:
    """Write into a checkpoint what a Sequence of validation data keeps."""
    own = np.frombuffer(source.state(), np.uint8)
    state_files.dump(folder, _SEQUENCE, {"looked_at": source.looked_at, "own": own})


def restore_source(source: DataSource, folder: Path) -> None:
    """Put back what :func:`save_source` has written."""
    if (folder / f"{_SEQUENCE}.json").exists():  # an earlier version has written none
        saved = state_files.load(folder, _SEQUENCE)
        source.go_on(saved["own"].tobytes(), looked_at=saved["looked_at"])


class _InOrder(Batches):
    """A Sequence, item by item."""

    def __init__(self, source: DataSource) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source.sequence)

    @property
    def first(self) -> Any:
        """The item that Keras reads to see its form."""
        return self._source.first

    def get(self, epoch: int, number: int) -> Any:
        return self._source.sequence[number]

    def epoch_ended(self, epoch: int) -> None:
        self._source.sequence.on_epoch_end()


class _OwnPart(SequenceBatches):
    """A rank's part of a Sequence; the first of another rank's where it has none."""

    def __len__(self) -> int:
        return self._share.own(len(self._sequence)) or 1


class StreamBatches(Batches):
    """The next batches of a generator, by their number within one validation.

    Keras looks at the first one before it reads them all, and reads each of the others once, in order.

    Attributes
    ----------
    taken : int
        Batches of all validations that have ended.
    """

    def __init__(self, stream: ReplayableStream, steps: int) -> None:
        self._stream = stream
        self._steps = steps
        self._position = 0
        self._first: Any = None
        self.taken = 0

    def __len__(self) -> int:
        return self._steps

    def get(self, epoch: int, number: int) -> Any:
        if number == 0 and self._position:
            return self._first
        try:
            batch = next(self._stream)
        except StopIteration:
            raise InvalidDataError(
                f"The validation generator ended after {self.taken + self._position} batches: each validation takes "
                f"validation_steps={self._steps}. Let it go on without end, or lower validation_steps."
            ) from None
        self._first = batch if number == 0 else None
        self._position += 1
        return batch

    def epoch_ended(self, epoch: int) -> None:
        """A validation has ended."""
        self.taken += self._position
        self._position, self._first = 0, None

    def skip(self, batches: int) -> None:
        """Go on after the batches that were taken before a restart."""
        self.taken += self._stream.skip(batches)


def validation_batch_size(call: FitCall, records: int, batch_size: int, ranks: int = 1) -> int:
    """Return a rank's rows of a batch of arrays: as asked for, or what Keras makes of the steps, or as in training.

    Of what is asked for, each of the `ranks` has its part; `batch_size` is that of a rank.
    """
    steps, size = call.arguments["validation_steps"], call.arguments["validation_batch_size"]
    if size is None and call.arguments["batch_size"] is None and steps is not None:
        size = math.ceil(records / steps)
    return max(1, size // ranks) if size else batch_size
