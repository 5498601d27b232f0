"""The metrics that a compiled model will report, as far as that is certain before it trains."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from det_native.keras.generations import internals

_OVERRIDABLE = ("compute_loss", "compute_metrics", "evaluate", "make_test_function", "test_step")


def certain_metrics(model: Any) -> list[str] | None:
    """Return the names of the metrics of a compiled model's validation, without ``val_``.

    Parameters
    ----------
    model : tf.keras.Model

    Returns
    -------
    list of str or None
        None if the names only show in training: a model with several outputs, none yet, or steps of its own; or a
        metric whose name Keras makes up.
    """
    kind = type(model)
    own = any(getattr(kind, name) is not getattr(tf.keras.Model, name) for name in _OVERRIDABLE)
    if own or not internals.is_compiled(model):
        return None
    if len(getattr(model, "outputs", None) or ()) != 1 or (given := internals.metrics_given(model)) is None:
        return None
    names = [_name(metric) for metric in given]
    return None if None in names else ["loss", *(name for name in names if name)]


def greater_is_better(name: str) -> bool:
    """Return whether Keras takes greater values of a metric for better, as its callbacks do with ``mode="auto"``."""
    return internals.greater_is_better(name)


def _name(metric: Any) -> str | None:
    if isinstance(metric, str):
        # Words in lower case are functions, which keep their name; classes number their instances.
        return metric if metric.islower() else None
    if isinstance(metric, tf.keras.metrics.Metric):
        return str(metric.name)
    return getattr(metric, "__name__", None) if callable(metric) else None
