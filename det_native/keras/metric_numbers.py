"""Metrics that nobody has named: Keras numbers them in a process, so each run of a cell would give them another name.

Where the program asks for one by a number that it has not (``val_auc`` in the second run of a cell, whose ``AUC()`` is
``auc_1``), the model's metrics get the names that they are asked for by.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from det_native.heap.ownership import is_users_module
from det_native.keras.generations import NUMBER, internals

_NUMBER = re.compile(r"_(\d+)$")
_DEPTH = 3


def name_as_asked(model: Any, metrics: Iterable[str], callbacks: Iterable[Any]) -> None:
    """Give metrics that nobody has named the names by which the program asks for them.

    Parameters
    ----------
    model : tf.keras.Model
        Compiled.
    metrics : iterable of str
        Names in the configuration.
    callbacks : iterable of tf.keras.callbacks.Callback
        What they monitor, or read in their own code, is asked for, too.
    """
    # Those of a model's own step are in its attributes.
    metrics_there = [*_metrics_given(model), *internals.metrics_of(model)]
    given = [metric for metric in metrics_there if _is_unnamed(metric)]
    if not given:
        return
    texts = {*metrics, *(text for callback in callbacks for text in _texts_of(callback))}
    others = {metric.name for metric in model.metrics}
    renamed: dict[str, str] = {}
    for base in dict.fromkeys(_base(metric.name) for metric in given):
        names = list(dict.fromkeys(metric.name for metric in given if _base(metric.name) == base))
        renamed |= _names_asked_for(base, names, texts)
    renamed = {name: new for name, new in renamed.items() if name != new}
    if not renamed or not others.isdisjoint({*renamed.values()} - {*renamed}):
        return
    metrics_of_model = {id(each): each for each in metrics_there if isinstance(each, tf.keras.metrics.Metric)}
    for metric in metrics_of_model.values():
        for name, new in renamed.items():
            if metric.name == name or metric.name.endswith(f"_{name}"):  # with the output before it
                metric._name = metric.name.removesuffix(name) + new
                break
    model.train_function = model.test_function = None  # they have the names in their graphs


def _metrics_given(model: Any) -> list[Any]:
    """Return what a model was compiled with as metrics, for all of its outputs."""
    compiled = getattr(model, "_compile_metrics" if NUMBER > 2 else "compiled_metrics", None)
    return _flat([getattr(compiled, name, None) for name in ("_user_metrics", "_user_weighted_metrics")])


def _flat(part: Any) -> list[Any]:
    if isinstance(part, dict):
        part = [*part.values()]
    return [each for one in part for each in _flat(one)] if isinstance(part, list | tuple) else [part]


def _names_asked_for(base: str, names: list[str], texts: Iterable[str]) -> dict[str, str]:
    """Return new names of the metrics of a kind: those of a new process, or the only one that is asked for."""
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(base)}(?:_\d+)?(?![A-Za-z0-9_])")
    asked = {found for text in texts for found in pattern.findall(text)}
    if asked <= {*names}:
        return {}
    anew = [base, *(f"{base}_{number}" for number in range(1, len(names)))]
    if asked <= {*anew}:
        return dict(zip(names, anew, strict=True))
    if len(names) == len(asked) == 1:
        return {names[0]: asked.pop()}
    return {}


def _base(name: str) -> str:
    return _NUMBER.sub("", name)


def _is_unnamed(metric: Any) -> bool:
    """Return whether a metric has the name that Keras makes of its class, with or without a number."""
    if not isinstance(metric, tf.keras.metrics.Metric):
        return False
    return _base(str(metric.name)).replace("_", "") == type(metric).__name__.lower().replace("_", "")


def _texts_of(callback: Any) -> Iterator[str]:
    """Yield the texts in the attributes of a callback, and in the code of the user's that it runs."""
    for value in vars(callback).values():
        yield from _texts_in(value, _DEPTH)
    for kind in type(callback).__mro__:
        if is_users_module(kind.__module__):
            for member in vars(kind).values():
                yield from _texts_in(member, _DEPTH)


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif not depth:
        return
    elif isinstance(value, types.FunctionType | types.MethodType):
        if is_users_module(value.__module__ or ""):
            yield from _texts_in(value.__code__, depth)
    elif isinstance(value, types.CodeType):
        for constant in value.co_consts:
            yield from _texts_in(constant, _DEPTH if isinstance(constant, types.CodeType) else depth - 1)
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _texts_in(part, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts_in(part, depth - 1)
