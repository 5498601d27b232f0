"""Trainings in the notebook that a worker cannot repeat: what they came to is kept, and travels instead.

TensorFlow without a global seed shuffles as its own C++ code draws, and nobody can restore that. A training by
``fit()`` leaves another `history` at its model.
"""

from __future__ import annotations

import io
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.capture.values import TOTAL_LIMIT

_EAGER = "tensorflow.python.eager.context"


@dataclass(frozen=True)
class Weights:
    """The weights of a model, and of its optimizer, as ``det_harness.program.weights`` reads them.

    `content` is None where they are too large to travel.
    """

    size: int
    content: bytes | None


class Trainings:
    """Sees which models of a namespace are trained by a cell while TensorFlow has no seed."""

    def __init__(self) -> None:
        self._unseeded = False
        self._before: dict[str, tuple[weakref.ref[Any], Any]] = {}

    def begin(self, namespace: Mapping[str, Any]) -> None:
        """Look before a cell."""
        self._unseeded = _has_no_seed()
        self._before = {name: (weakref.ref(model), _history(model)) for name, model in _models(namespace)}

    def end(self, namespace: Mapping[str, Any]) -> dict[str, Weights]:
        """Return the weights of the models that the cell has trained, and of those that share weights with them."""
        before, self._before = self._before, {}
        if not (self._unseeded or _has_no_seed()):
            return {}
        models = dict(_models(namespace))
        trained = [model for name, model in models.items() if _is_trained(model, before.get(name))]
        parts = {id(one) for model in trained for one in model.weights}
        kept: dict[tuple[int, ...], Weights] = {}
        found = {}
        for name, model in models.items():
            places = tuple(map(id, model.weights))
            if not parts.isdisjoint(places):
                if places not in kept:
                    kept[places] = _weights(model)
                found[name] = kept[places]
        return found


def _models(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "keras" not in sys.modules:
        return
    for name, value in list(namespace.items()):
        if not name.startswith("_") and _is_model(type(value)) and value.built:
            yield name, value


def _is_model(kind: type) -> bool:
    return any(one.__name__ == "Model" and one.__module__.partition(".")[0] == "keras" for one in kind.__mro__)


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


def _weights(model: Any) -> Weights:
    import numpy as np

    optimizer = getattr(model, "optimizer", None)
    of_optimizer = getattr(optimizer, "variables", ())
    of_optimizer = of_optimizer() if callable(of_optimizer) else of_optimizer
    arrays = {f"weight_{place}": np.asarray(one) for place, one in enumerate(model.weights)}
    arrays |= {f"optimizer_{place}": np.asarray(one) for place, one in enumerate(of_optimizer)}
    size = sum(array.nbytes for array in arrays.values())
    if size > TOTAL_LIMIT or any(array.dtype.hasobject for array in arrays.values()):
        return Weights(size, None)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return Weights(size, file.getvalue())
