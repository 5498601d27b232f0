"""Keras: layers, models, and what its objects keep of having been used.

Keras 2 and Keras 3 share this file: of both, the classes have the same names, and only their random streams differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_native.inspection.adapter import Adapter, Library


class _Layer(Adapter):
    never_sent = "model"

    def parts(self, value: Any) -> Iterable[Any]:
        layers = getattr(value, "_flatten_layers", None)
        return list(layers()) if callable(layers) else ()


class _Model(_Layer):
    def weights(self, value: Any) -> list[Any]:
        return list(value.get_weights()) if value.built else []


class _Optimizer(Adapter):
    never_sent = "optimizer"


_PACKAGES = ("keras", "tf_keras")
LIBRARY = Library(
    {
        f"{package}.{name}": adapter
        for package in _PACKAGES
        for name, adapter in (("Layer", _Layer()), ("Model", _Model()), ("Optimizer", _Optimizer()))
    },
    others=Adapter(),
)
