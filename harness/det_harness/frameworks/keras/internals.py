"""Private attributes of tf.keras 2.15, which has no public ones for what is asked here."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.trackable.base import Trackable


def takes_several_batches(model: Any) -> bool:
    """Return whether one call of the model's training function takes several batches (``steps_per_execution``)."""
    steps = model._steps_per_execution
    return bool(model._autotune_steps_per_execution) or (steps is not None and int(steps) > 1)


def use_older_optimizer(model: Any) -> None:
    """Give a model the form of its optimizer that graphs train with, and whose state their checkpoints have.

    The other form cannot be used in a graph.
    """
    from keras.src.optimizers import convert_to_legacy_optimizer

    optimizer = model.optimizer
    if not isinstance(optimizer, tf.keras.optimizers.Optimizer):
        return
    serialized = optimizer._serialize_hyperparameter

    def value(given: Any) -> Any:
        # In a graph it cannot read the learning rate, and nobody has initialised the variable.
        if tf.executing_eagerly() or not isinstance(given, tf.Variable):
            return serialized(given)
        session = tf.compat.v1.keras.backend.get_session()
        session.run(given.initializer)
        return session.run(given)

    optimizer._serialize_hyperparameter = value
    try:
        model.optimizer = convert_to_legacy_optimizer(optimizer)
    finally:
        optimizer._serialize_hyperparameter = serialized


def build_optimizer(model: Any) -> None:
    """Make the variables of the model's optimizer; one of the older form makes them with its first step."""
    build = getattr(model.optimizer, "build", None) or getattr(model.optimizer, "_create_all_weights", None)
    if build is not None:
        build(model.trainable_variables)


def metrics_of(model: Any) -> list[Any]:
    """Return the metrics of a model, with those of the losses of its outputs."""
    of_graphs = getattr(model, "_get_training_eval_metrics", None)
    return list(model.metrics if of_graphs is None else of_graphs())


def counters_of(model: Any) -> list[Any]:
    """Return the variables that count the steps of a model; one of graphs has none."""
    names = ("_train_counter", "_test_counter", "_predict_counter")
    return [getattr(model, name) for name in names if hasattr(model, name)]


def build_training(model: Any) -> None:
    """Build what trains a model of graphs, with the variables of its optimizer."""
    model._make_train_function()


class WithoutOptimizers(Trackable):  # type: ignore[misc]  # TensorFlow has no types
    """A model as checkpoints see it, but for its optimizers: what a checkpoint has of those is left there."""

    def __init__(self, model: Any) -> None:
        self._of = model

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found = self._of._trackable_children(*args, **kwargs)
        return {name: child for name, child in found.items() if not _is_optimizer(child)}

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        child = self._of._lookup_dependency(name, *args)
        return None if _is_optimizer(child) else child


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, tf.keras.optimizers.Optimizer | tf.keras.optimizers.legacy.Optimizer)
