"""The user's ``input_fn``, called and checked, and where the training data stand.

The training Dataset is repeated, and its iterator's state goes into the checkpoints. TensorFlow's iterators forget the
seeds of a shuffle once its last record has been read ahead: such a state is not whole. Then the last one that was
whole is written with the number of batches that have been taken since, which are read again where a training continues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.estimator import internals
from det_harness.trial import state_files
from det_native.errors import InvalidDataError
from det_native.estimator.base_context import EstimatorContext
from det_native.estimator.inputs import called
from det_native.keras.caches.decorators import check_after_cache

logger = logging.getLogger("det_native")

_NAME = "data_position"
_FAIL_WHERE_STATE_IS_OUTSIDE = 2
# What a shuffle that draws seeds anew for each pass has in its state.
_SEEDS = b"epoch_num_random_samples"
_RESEEDING = ("Shuffle", "RandomDataset")


class Input:
    """One ``input_fn`` of the user's.

    Parameters
    ----------
    what : str
        What to call it in messages.
    arguments : dict
        What it may ask for by name: ``mode``, ``params``, ``config``.
    """

    def __init__(
        self, function: Callable[..., Any], what: str, context: EstimatorContext, arguments: dict[str, Any]
    ) -> None:
        self._function = function
        self._what = what
        self._context = context
        self._arguments = arguments
        self._kept: Any = None

    def dataset(self) -> Any:
        """Return the Dataset.

        Raises
        ------
        InvalidDataError
            If it returns something else, or a Dataset that is not wrapped.
        """
        wrapped = self._context.shared_datasets
        found = called(self._function, self._what, self._arguments)
        self._check_shared(found, wraps=self._context.shared_datasets != wrapped)
        check_after_cache(found)
        self._kept = found  # what is known of caches is known as long as a Dataset of theirs is
        return found

    def _check_shared(self, found: Any, *, wraps: bool) -> None:
        if not self._context.env.managed:
            return
        if not wraps:
            raise InvalidDataError(
                f"{self._what} returned a Dataset that is not wrapped: call dataset = context.wrap_dataset(dataset) "
                "right after it is made."
            )
        slots = self._context.distributed.get_size()
        if slots > 1 and not self._context.is_shared(found):
            raise InvalidDataError(
                f"{self._what} returned a Dataset that is not made of what context.wrap_dataset() has returned, and "
                f"each of the {slots} processes would read all of it: use the result, dataset = "
                "context.wrap_dataset(dataset), and go on with that."
            )

    def all_of_it(self) -> Any:
        """Return the Dataset of an evaluation that goes to the end.

        Raises
        ------
        InvalidDataError
            As for :meth:`dataset`, and if it has no end.
        """
        found = self.dataset()
        if _value(tf.data.experimental.cardinality(found)) == tf.data.INFINITE_CARDINALITY:
            raise InvalidDataError(
                f"{self._what} returned a Dataset without end, which steps=None would read for ever: set steps, or "
                "leave dataset.repeat() out."
            )
        return found


class TrainingData:
    """The training data of one run, from any batch.

    Parameters
    ----------
    batch : int
        The batches that were done before; without a folder, as many are read to begin with.
    """

    def __init__(self, source: Input, folder: Path | None, batch: int = 0) -> None:
        self._source = source
        self._base: bytes | None = None  # the last state that was whole
        self._base_batch = 0
        self._saved_batch = batch
        if folder is not None:
            position = state_files.load(folder, _NAME)
            state = position["state"]
            self._base = None if state is None else state.tobytes()
            self._base_batch, self._saved_batch = position["batch"], position["batch"] + position["since"]
        self._reason = ""
        self._reported = False

    def __call__(self) -> Any:
        """Build the data in the training's graph; return features and labels, as an ``input_fn`` does."""
        dataset = self._source.dataset()
        self._seeds = _reseedings(dataset)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset.repeat())
        resource = internals.resource_of(iterator)
        self._begin = iterator.initializer
        element = iterator.get_next()
        self._next = tf.nest.flatten(element, expand_composites=True)[0].op
        self._state = tf.io.serialize_tensor(
            tf.raw_ops.SerializeIterator(resource_handle=resource, external_state_policy=_FAIL_WHERE_STATE_IS_OUTSIDE)
        )
        self._given = tf.compat.v1.placeholder(tf.string, ())
        state = tf.io.parse_tensor(self._given, tf.variant)
        self._restore = tf.raw_ops.DeserializeIterator(resource_handle=resource, serialized=state)
        return element

    def begin(self, session: Any) -> None:
        """Bring the data to where the checkpoint was taken."""
        session.run(self._begin)
        if self._base is not None:
            session.run(self._restore, {self._given: self._base})
        since = self._saved_batch - self._base_batch
        if since:
            logger.info("Reading %d batches of the training Dataset again, to continue after them.", since)
        for _ in range(since):
            session.run(self._next)

    def save(self, session: Any, folder: Path, batch: int) -> None:
        """Write the position after `batch` batches into a checkpoint."""
        if not self._reason:
            self._take(session, batch)
        state = None if self._base is None else np.frombuffer(self._base, np.uint8)
        state_files.dump(folder, _NAME, {"state": state, "batch": self._base_batch, "since": batch - self._base_batch})
        if self._reason and not self._reported:
            self._reported = True
            logger.warning(
                "The position in the training Dataset cannot be saved (%s): after a restart its batches are read "
                "again from the first.",
                self._reason,
            )

    def _take(self, session: Any, batch: int) -> None:
        try:
            state = session.run(self._state)
        except (tf.errors.FailedPreconditionError, tf.errors.UnimplementedError) as error:
            self._reason = error.message.partition("Node:")[2].partition("\n")[2].strip() or error.message
            self._reason = self._reason.partition("\n")[0].rsplit("}}", 1)[-1].strip()
            self._base, self._base_batch = None, 0
            return
        if state.count(_SEEDS) >= self._seeds:
            self._base, self._base_batch = state, batch


def _reseedings(dataset: Any) -> int:
    """Return how many parts of a Dataset draw seeds anew for each pass over it."""
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(_value(internals.graph_of(dataset)))
    return sum(
        node.op.startswith(_RESEEDING)
        and (node.attr["reshuffle_each_iteration"].b or node.attr["rerandomize_each_iteration"].b)
        for node in graph.node
    )


def _value(tensor: Any) -> Any:
    """Return what a tensor of the present graph, which is still being built, has."""
    if tf.executing_eagerly():
        return tensor.numpy()
    with tf.compat.v1.Session(graph=tensor.graph) as session:
        return session.run(tensor)
