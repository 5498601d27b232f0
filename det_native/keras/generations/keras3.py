"""Keras 3, by its public interface: the same for the backends TensorFlow, JAX and PyTorch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tensorflow as tf

from det_native.process.keras_ import KERAS_3
from det_native.process.streams import put_back

QUEUE_DEFAULTS: Mapping[str, Any] = {"max_queue_size": 10, "workers": 1, "use_multiprocessing": False}

_GREATER = ("acc", "accuracy", "auc")


def takes_several_batches(model: Any) -> bool:
    """Return whether one call of the model's training function takes several batches (``steps_per_execution``)."""
    return int(model.steps_per_execution or 1) > 1


def class_weighting(class_weight: dict[int, float]) -> Any:
    """Return what is mapped over a Dataset of ``(x, y)`` for weights of classes."""
    table = tf.constant([float(class_weight.get(number, 1.0)) for number in range(max(class_weight) + 1)])

    def weigh(*batch: Any) -> Any:
        x, y, given = tf.keras.utils.unpack_x_y_sample_weight(batch)
        _refuse_two_weights(given)
        several = y.shape.rank is not None and y.shape.rank > 1
        classes = tf.argmax(y, -1) if several and y.shape[-1] != 1 else tf.squeeze(y, -1) if several else y
        return x, y, tf.gather(table, tf.cast(tf.round(tf.cast(classes, tf.float32)), tf.int64))

    return tf.autograph.experimental.do_not_convert(weigh)


def weighted(batch: Any, class_weight: dict[int, float] | None) -> Any:
    """Return a batch of arrays as a tuple, with the weights of its rows by their classes if there are any."""
    parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    if class_weight is None:
        return parts
    x, y, given = tf.keras.utils.unpack_x_y_sample_weight(parts)
    _refuse_two_weights(given)
    labels = np.asarray(y)
    several = labels.ndim > 1
    classes = labels.argmax(-1) if several and labels.shape[-1] > 1 else labels[..., 0] if several else labels
    table = [float(class_weight.get(number, 1.0)) for number in range(max(class_weight) + 1)]
    return x, y, np.asarray(table, "float32")[np.rint(classes).astype("int64")]


def _refuse_two_weights(given: Any) -> None:
    if given is not None:
        raise ValueError("class_weight cannot be given together with sample weights.")


def is_compiled(model: Any) -> bool:
    """Return whether a model is compiled."""
    return bool(model.compiled)


def build_on(model: Any, inputs: Any) -> None:
    """Make the variables of a model by tensors that have a shape and no values."""

    def symbolic(value: Any) -> Any:
        return tf.keras.KerasTensor(tuple(value.shape), tf.keras.backend.standardize_dtype(value.dtype))

    model(tf.nest.map_structure(symbolic, inputs), training=False)


def build_for(optimizer: Any, variables: Sequence[Any]) -> None:
    """Make the variables that an optimizer needs to train these."""
    if variables:
        optimizer.build(variables)


def trained_by(optimizer: Any) -> list[Any] | None:
    """Return the variables that an optimizer was built for."""
    return [id(variable) for variable in getattr(optimizer, "_trainable_variables", ())] if optimizer.built else []


def key_of(variable: Any) -> Any:
    """Return by what :func:`trained_by` names a variable."""
    return id(variable)


def metrics_of(model: Any) -> list[Any]:
    """Return the single metrics of a model: those of ``compile()`` are in one that holds them."""
    found: list[Any] = []
    for metric in model.metrics:
        inside = getattr(metric, "metrics", None)
        found += [metric] if inside is None else inside
    return found


def metric_variables(model: Any) -> list[Any]:
    """Return the variables of all metrics."""
    return list(model.metrics_variables)


def variables_in(weights: Iterable[Any]) -> list[Any]:
    """Return the variables among the weights: all of them."""
    return list(weights)


def values_of(variables: Sequence[Any]) -> list[Any]:
    """Return the values of variables as arrays."""
    return [np.array(tf.keras.ops.convert_to_numpy(variable)) for variable in variables]


def set_values(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Give variables values."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def settle(model: Any) -> None:
    """Put into the variables what the training has reached: JAX keeps it elsewhere between batches."""
    if tf.keras.backend.backend() == "jax":
        model.jax_state_sync()


def counters_of(model: Any) -> list[Any]:
    """Return nothing: models count no steps."""
    return []


def layers_of(model: Any, *, include_self: bool = True) -> list[Any]:
    """Return the layers of a model and theirs in turn."""
    found = [model] if include_self else []
    for layer in getattr(model, "layers", ()):
        found += layers_of(layer)
    return found


def as_in_fit(model: Any) -> AbstractContextManager[Any]:
    """Return a context that changes nothing: ``fit()`` takes ``trainable`` as it is."""
    return nullcontext()


def metrics_given(model: Any) -> list[Any] | None:
    """Return the names of the metrics a model was compiled with; None where that does not tell what it will report."""
    config = model.get_compile_config() or {}
    names: list[str] = []
    for part in (config.get("metrics"), config.get("weighted_metrics")):
        for metric in tf.nest.flatten(part) if isinstance(part, list | tuple) and _is_plain(part) else _each(part):
            name = _name_of(metric)
            if name is None:
                return None
            names.append(name)
    # Metrics that layers and the model itself add.
    own = {metric.name for metric in model.metrics if getattr(metric, "metrics", None) is None}
    return names if own <= {"loss"} else None


def _is_plain(part: Any) -> bool:
    return all(isinstance(each, str) for each in tf.nest.flatten(part))


def _each(part: Any) -> list[Any]:
    if part is None:
        return []
    return [each for one in part for each in _each(one)] if isinstance(part, list | tuple) else [part]


def _name_of(metric: Any) -> str | None:
    """Return the name of a metric in a configuration of ``compile()``."""
    if isinstance(metric, str):
        return metric
    inside = metric.get("config") if isinstance(metric, dict) else None
    name = inside.get("name") if isinstance(inside, dict) else inside
    return name if isinstance(name, str) else None


def greater_is_better(name: str) -> bool:
    """Return whether greater values of a metric are better, by its name: its callbacks know only with a model."""
    return name.endswith(_GREATER)


def seed(seed: int) -> None:
    """Make the weights of models built from now on follow from a seed: layers draw theirs from Python's generator."""
    tf.keras.utils.set_random_seed(seed)


def seed_as_plain(seed: int) -> None:
    """Have Keras draw seeds from Python's generator, as it does in a new process, and seed that.

    ``keras.utils.set_random_seed``, called later, gives Keras a seed of its own.
    """
    random.seed(seed)
    tf.random.set_seed(seed)
    put_back({KERAS_3: [None, None]}, ("keras",))


def reading_of(sequence: Any) -> dict[str, Any]:
    """Return how a ``PyDataset`` says that it is read."""
    return {name: getattr(sequence, name) for name in QUEUE_DEFAULTS}
