"""What the callbacks of a call of ``fit`` lead to: the lists, counters and objects of the program that they change."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import tensorflow as tf

from det_native.carried.call import CallNames, unwrapped
from det_native.carried.table import Kinds
from det_native.inspection.attributes import begins_anew, changed_by_use, is_own_module
from det_native.keras.data import Kind
from det_native.keras.generations import internals
from det_native.keras.native import FitCall

logger = logging.getLogger("det_native")

_CONTAINERS = (list, dict, set, tuple, deque)


def begin(call: FitCall) -> CallNames | None:
    """Look at what the callbacks of a call lead to, before it trains; None without callbacks.

    What Keras's checkpoints of ours keep by themselves is left out: the model, what callbacks hold in numbers,
    containers and variables, and the data.
    A program whose objects cannot be looked at is trained all the same, and a line says so.
    """
    callbacks = call.callbacks()
    if not callbacks:
        return None
    roots: dict[str, Any] = {}
    apart: set[str] = set()
    renewed: list[Any] = []
    for callback in callbacks:
        fresh = begins_anew(callback, "on_train_begin", internals.SET_BY_KERAS)
        if fresh:
            renewed.append(callback)
        for name, value, code in _parts_of(callback):
            key = name if name not in roots else f"{name} ({len(roots)})"
            roots[key] = value
            if not code:
                apart.add(key)
                if fresh:
                    renewed.append(value)
    try:
        return CallNames(roots, _known(call), apart, callbacks, renewed, kinds=_kinds())
    except Exception as error:  # noqa: BLE001 (objects of users may raise anything when they are looked at)
        logger.warning(
            "What callbacks change in the program's variables is not kept, as they cannot be read: %s", error
        )
        return None


def _parts_of(callback: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield what a callback has that leads to names of the program; whether it is code."""
    kind: type = type(callback)
    own, changed = is_own_module(kind.__module__), changed_by_use(kind)
    if own:
        yield kind.__qualname__, kind, True
    for attribute, held in vars(callback).items():
        if attribute in internals.SET_BY_KERAS:
            continue
        for value in unwrapped(held):
            code = isinstance(value, FunctionType | type)
            collects = own and attribute in changed and isinstance(value, _CONTAINERS)
            if code or collects or is_own_module(type(value).__module__):
                yield f"{kind.__qualname__}.{attribute}", value, code


def _known(call: FitCall) -> dict[Any, Any]:
    known: dict[Any, Any] = {("callback", index): each for index, each in enumerate(call.callbacks())}
    known |= {("context",): call.context, ("model",): call.model, ("optimizer",): call.model.optimizer}
    for name, data in (("training", call.training), ("validation", call.validation)):
        if data is not None and data.kind in (Kind.SEQUENCE, Kind.GENERATOR):
            known["data", name] = data.x
    return known


def _kinds() -> Kinds:
    return Kinds(fixed=(tf.Tensor, tf.Variable, tf.data.Dataset, tf.io.gfile.GFile, *internals.tracked_kinds()))
