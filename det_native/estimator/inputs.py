"""What an ``input_fn`` says about a training: how long its Dataset is, and its batch size."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from det_native.errors import ArgumentError, InvalidDataError
from det_native.keras.pipelines import batch_size_of_step, graph_of_tensor, is_of_another_graph, steps_up

_MADE_BEFORE = (
    "that was made outside of it. An Estimator calls its input_fn in a new graph, which cannot use what another graph "
    "has: make the Dataset inside the input_fn, from arrays or files, and wrap it there."
)


def called(function: Callable[..., Any], what: str, arguments: dict[str, Any]) -> Any:
    """Call an ``input_fn`` in the graph that is the default one, and return its Dataset.

    Parameters
    ----------
    function : callable
    what : str
        What to call it in messages.
    arguments : dict
        What it may ask for by name: ``mode``, ``params``, ``config``.

    Raises
    ------
    InvalidDataError
        If it returns something else, or what was made in another graph.
    """
    names = inspect.signature(function).parameters
    try:
        found = function(**{name: value for name, value in arguments.items() if name in names})
    except (ValueError, RuntimeError) as error:
        if is_of_another_graph(error):
            raise InvalidDataError(f"{what} uses a Dataset or a tensor {_MADE_BEFORE}") from error
        raise
    if not isinstance(found, tf.data.Dataset):
        raise InvalidDataError(
            f"{what} returned {_named(found)}; return a tf.data.Dataset, whose elements are (features, labels)."
        )
    if graph_of_tensor(found) is not tf.compat.v1.get_default_graph():
        raise InvalidDataError(f"{what} returned a Dataset {_MADE_BEFORE}")
    return found


def batch_size(function: Callable[..., Any], what: str, arguments: dict[str, Any]) -> int | None:
    """Return the records per batch of an ``input_fn``; None if it does not tell."""
    with tf.Graph().as_default():
        sizes = (batch_size_of_step(step) for step in steps_up(called(function, what, arguments)))
        return next((size for size in sizes if size), None)


def batches(function: Callable[..., Any], what: str, arguments: dict[str, Any]) -> int:
    """Return the batches of an ``input_fn``, which are read for it where nothing else tells their number.

    Raises
    ------
    ArgumentError
        If it has no end.
    """
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        dataset = called(function, what, arguments)
        known = int(session.run(tf.data.experimental.cardinality(dataset)))
        if known == tf.data.INFINITE_CARDINALITY:
            raise ArgumentError(
                f"{what} gives data without end, and nothing says how long to train: set max_steps of the TrainSpec, "
                "or searcher.max_length in the configuration."
            )
        if known >= 0:
            return known
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        take = tf.nest.flatten(iterator.get_next(), expand_composites=True)[0].op
        session.run([tf.compat.v1.tables_initializer(), iterator.initializer])
        for count in itertools.count():
            try:
                session.run(take)
            except tf.errors.OutOfRangeError:
                return count
    raise AssertionError  # the loop has no other end


def _named(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)} parts"
    return "None" if value is None else f"a {type(value).__name__}"
