"""How data reach Keras 3's loop, so that any batch of a trial can be reached again after a restart.

With the backend TensorFlow, arrays and Datasets are read as with tf.keras 2. All else is a Python generator without end
that begins at the right batch: the ``fit`` of Keras 3 begins only at epochs, and reads ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import data as of_all
from det_harness.frameworks.keras.dataset_feed import DatasetFeed
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.feed import Feed
from det_harness.frameworks.keras.sequences import View
from det_harness.frameworks.keras.shares import Share
from det_harness.frameworks.keras.validation import StreamBatches, ValidationFeed
from det_native.errors import UnsupportedFeatureError
from det_native.keras.data import Data, Kind
from det_native.keras.generations import BACKEND
from det_native.keras.generations.keras3 import QUEUE_DEFAULTS, weighted
from det_native.keras.native import FitCall
from det_native.keras.sources import DataSource
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_native")


def make_feed(call: FitCall, environment: TrialEnvironment, lengths: EpochLengths) -> Feed:
    """Make the feed for the training data of a call; see ``make_feed`` of tf.keras 2."""
    feed, kind = of_all.make_feed(call, environment, lengths), call.training.kind
    if isinstance(feed, DatasetFeed):
        if BACKEND == "tensorflow":
            return feed
        if kind is Kind.SPARSE:
            raise UnsupportedFeatureError(f"Keras's backend {BACKEND} reads no sparse or ragged tensors here.")
        return _GeneratedFeed(feed, partial(_of_dataset, call))
    if kind is Kind.GENERATOR:
        return _GeneratedFeed(feed, partial(_of_stream, call, Share.of(environment)))
    if kind is Kind.ARRAYS:
        return feed
    return _GeneratedFeed(feed, partial(_of_view, call, feed.arguments(0)["x"], lengths))


def _of_view(call: FitCall, view: View, lengths: EpochLengths, done: int) -> Iterator[Any]:
    """Yield a Sequence's batches, or those of array-likes, epoch after epoch."""
    weights = call.arguments["class_weight"]
    view.start(done)
    epoch, _ = lengths.place(done)
    while True:
        for number in range(view.remaining):
            yield weighted(view.read(number), weights)
        epoch += 1
        # Keras reads ahead, so the Sequence hears of an epoch's end when its last batch has been read.
        view.begin_epoch(epoch)


def _of_stream(call: FitCall, share: Share, done: int) -> Iterator[Any]:
    """Yield a generator's batches: what was trained on before a restart is pulled again; each rank keeps its own."""
    stream, weights = call.training.x, call.arguments["class_weight"]
    stream.skip(done * share.size)
    for together in zip(*[iter(stream)] * share.size, strict=False):
        yield weighted(together[share.rank], weights)


def _of_dataset(call: FitCall, done: int) -> Iterator[Any]:
    """Yield a Dataset's batches for another backend than TensorFlow: they are read again from the first."""
    if done:
        logger.info("Reading the first %d batches of the training Dataset again, to continue after them.", done)
    number = 0
    while True:
        for batch in call.training.x:
            number += 1
            if number > done:
                found = tf.nest.map_structure(lambda tensor: tensor.numpy(), batch)
                yield weighted(found, call.arguments["class_weight"])


class _GeneratedFeed(Feed):
    """Gives Keras a generator without end.

    Parameters
    ----------
    batches : callable
        Yields the batches after so many; Keras weighs no classes of a generator, so it is done there.
    """

    def __init__(self, feed: Feed, batches: Callable[[int], Iterator[Any]]) -> None:
        self._feed = feed
        self._batches = batches
        self._raised: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """What making a batch raised; TensorFlow passes on only its text."""
        return self._raised or self._feed.error

    def arguments(self, batches: int) -> dict[str, Any]:
        """Return a generator that continues after `batches` batches; it weighs classes itself."""
        return {"x": self._watched(batches), "class_weight": None}

    def _watched(self, batches: int) -> Iterator[Any]:
        try:
            yield from self._batches(batches)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._raised = error
            raise

    def first(self) -> Any:
        """Return a batch to build the model with."""
        return self._feed.first()

    def restore(self, folder: Path) -> None:
        """Have the view take what a checkpoint has."""
        self._feed.restore(folder)

    def save(self, folder: Path, batches: int) -> None:
        """Write what a view needs to go on; for all else the number of batches says where the data stand."""
        if not isinstance(self._feed, DatasetFeed):
            self._feed.save(folder, batches)

    def close(self) -> None:
        """End what reads ahead."""
        self._feed.close()


class Keras3ValidationFeed(ValidationFeed):
    """See ``ValidationFeed``; Keras is given the data anew for each validation."""

    def _batches(self, data: Data, batch_size: int, steps: int | None) -> Any:
        if data.kind is Kind.SEQUENCE and self._share.size == 1:
            self._source = DataSource(
                data.x, apart=False, kept_elsewhere=[*self._call.trained_parts, *self._call.callbacks()]
            )
            self._source.look()
            return _Reading(data.x, self._call.validation_queue)
        if data.kind is Kind.GENERATOR and self.steps is not None:
            self._stream = StreamBatches(data.x, int(self.steps))
            self._count = lambda: self._share.rank == 0  # each pulls the same batches
            return data.x
        return super()._batches(data, batch_size, steps)

    def arguments(self) -> dict[str, Any]:
        """Return arguments of ``evaluate``."""
        if self.x is None:
            return {}
        if self._stream is not None:
            return {"x": _taken(self._stream), "steps": self.steps}
        if isinstance(self.x, View):
            return {"x": _once(self.x), "steps": len(self.x)}
        if hasattr(self.x, "__next__"):
            return {"x": (weighted(batch, None) for batch in self.x), "steps": self.steps}
        return {"x": self.x, "steps": self.steps}

    def queue_arguments(self) -> dict[str, Any]:
        """Return nothing: ``fit`` and ``evaluate`` of Keras 3 take no arguments for queues."""
        return {}

    @property
    def read_apart(self) -> bool:
        """Whether the validation data are read in another way than the training data: each says how."""
        return False


class _Reading(tf.keras.utils.PyDataset):  # type: ignore[misc]  # TensorFlow has no types
    """A Sequence that Keras reads in the threads or processes that are said beside it."""

    def __init__(self, sequence: Any, queue: Mapping[str, Any]) -> None:
        super().__init__(**{name: queue[name] for name in QUEUE_DEFAULTS})
        self._sequence = sequence

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, number: int) -> Any:
        return self._sequence[number]

    def on_epoch_end(self) -> None:
        """Pass it on."""
        self._sequence.on_epoch_end()


def _taken(stream: StreamBatches) -> Iterator[Any]:
    """Yield the batches of one validation, and no more of the generator."""
    for number in range(len(stream)):
        batch = stream.get(0, number)
        if number == len(stream) - 1:  # not after it: Keras may ask for no more
            stream.epoch_ended(0)
        yield weighted(batch, None)


def _once(view: View) -> Iterator[Any]:
    for number in range(view.remaining):
        yield weighted(view.read(number), None)


def is_read_past_keras(feed: Feed) -> bool:
    """Return whether Keras's training function is given another iterator than its own, which can be saved."""
    return isinstance(feed, DatasetFeed)
