"""Trainings in the notebook that a worker cannot repeat: the same training comes to other weights there.

TensorFlow without a global seed shuffles as its own C++ code draws, and nobody can restore that. A training by
``fit()`` leaves another `history` at its model.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

_EAGER = "tensorflow.python.eager.context"


class Trainings:
    """Sees which models of a namespace are trained by a cell while TensorFlow has no seed."""

    def __init__(self) -> None:
        self._unseeded = False
        self._before: dict[str, tuple[weakref.ref[Any], Any]] = {}

    def begin(self, namespace: Mapping[str, Any]) -> None:
        """Look before a cell."""
        self._unseeded = _has_no_seed()
        self._before = {name: (weakref.ref(model), _history(model)) for name, model in _models(namespace)}

    def end(self, namespace: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the models that the cell has trained, and of those that share weights with them."""
        before, self._before = self._before, {}
        if not (self._unseeded or _has_no_seed()):
            return frozenset()
        models = dict(_models(namespace))
        trained = [model for name, model in models.items() if _is_trained(model, before.get(name))]
        parts = {id(weight) for model in trained for weight in model.weights}
        return frozenset(name for name, model in models.items() if not parts.isdisjoint(map(id, model.weights)))


def _models(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "keras" not in sys.modules:
        return
    for name, value in list(namespace.items()):
        if not name.startswith("_") and _is_model(type(value)) and value.built:
            yield name, value


def _is_model(kind: type) -> bool:
    return any(base.__name__ == "Model" and base.__module__.partition(".")[0] == "keras" for base in kind.__mro__)


def _history(model: Any) -> weakref.ref[Any] | None:
    history = getattr(model, "history", None)
    return None if history is None else weakref.ref(history)


def _is_trained(model: Any, before: tuple[weakref.ref[Any], weakref.ref[Any] | None] | None) -> bool:
    history = getattr(model, "history", None)
    if before is None or before[0]() is not model:
        return history is not None
    return history is not None and (before[1] is None or before[1]() is not history)


def _has_no_seed() -> bool:
    module = sys.modules.get(_EAGER)
    return module is not None and getattr(module.context(), "_seed", None) is None
