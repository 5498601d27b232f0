"""The metrics that a call of ``fit`` will report, as far as that is certain before it trains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from det_native.errors import TrialDefinitionError
from det_native.keras.generations import internals
from det_native.schema.metric_names import PREFIXES, closest_metric, suggestion, without_prefix

# What Keras adds to a name that it has given before.
_NUMBER = re.compile(r"_\d+$")

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


def adds_metrics(callback: Any) -> bool:
    """Return whether a callback may put metrics into ``logs``: its ``on_epoch_end`` is not Keras's."""
    hook = getattr(callback, "on_epoch_end", None)
    libraries = {module.partition(".")[0] for module in (tf.keras.callbacks.Callback.__module__, __name__)}
    return (getattr(hook, "__module__", None) or "").partition(".")[0] not in libraries


def check_compared(metric: str | None, model: Any, *, validated: bool, may_add: bool) -> None:
    """Check that a call of ``fit`` gives the metric that trials are compared by, as far as that is known before it.

    Parameters
    ----------
    model : tf.keras.Model
        Compiled.
    validated : bool
        Whether there are validation data.
    may_add : bool
        Whether callbacks may add metrics: those that the model has not, the end of the first epoch shows.

    Raises
    ------
    TrialDefinitionError
    """
    if not metric:
        return
    known = certain_metrics(model)
    if may_add and without_prefix(metric) not in {"loss", *(known or ())}:
        return
    if not validated:
        if metric.startswith(PREFIXES):
            raise TrialDefinitionError(
                f"searcher.metric is '{metric}', but fit() has no validation data. Pass validation_data or "
                "validation_split, or set searcher.metric to 'loss' or another training metric."
            )
        return
    names = [f"val_{name}" for name in known or ()]
    if not metric.startswith("val_"):
        meant = closest_metric(metric, names)
        remedy = f"set it to '{meant or f'val_{without_prefix(metric)}'}'"
        if known is not None and meant is None:
            remedy += f", with that metric in model.compile(metrics=[...]), or to one of {', '.join(names)}"
        raise TrialDefinitionError(
            f"searcher.metric is '{metric}', but validation metrics of Keras start with 'val_': {remedy}."
        )
    if known is not None and metric not in names:
        raise TrialDefinitionError(
            f"searcher.metric is '{metric}', but the model is compiled to report {', '.join(names)}. "
            f"{suggestion(metric, names)}{_advice(metric, names)}"
        )


def greater_is_better(name: str) -> bool:
    """Return whether Keras takes greater values of a metric for better, as its callbacks do with ``mode="auto"``."""
    return internals.greater_is_better(name)


def _advice(metric: str, names: Sequence[str]) -> str:
    """Return what to do about a metric that the model does not report."""
    base = _NUMBER.sub("", metric)
    if base in {_NUMBER.sub("", name) for name in names}:
        own = without_prefix(base)
        return (
            "Keras numbers the metrics that nobody has named, one after another in the whole kernel: give this one a "
            f"name, such as name='{own}', and set searcher.metric to 'val_{own}'."
        )
    return "Add the metric to model.compile(metrics=[...]), or set searcher.metric to one of these."


def _name(metric: Any) -> str | None:
    if isinstance(metric, str):
        # Words in lower case are functions, which keep their name; classes number their instances.
        return metric if metric.islower() else None
    if isinstance(metric, tf.keras.metrics.Metric):
        return str(metric.name)
    return getattr(metric, "__name__", None) if callable(metric) else None
