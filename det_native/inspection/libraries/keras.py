"""Keras: layers, models, and what its objects keep of having been used.

Keras 2 and Keras 3 share this file: of both, the classes have the same names, and only their random streams differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from det_native.inspection.adapter import Adapter, Library


class _Object(Adapter):
    #: Compiled functions, counters for callbacks, lists of what their other attributes hold.
    caches = frozenset(
        {"train_function", "test_function", "predict_function", "train_tf_function", "history", "_called"}
        | {"_allow_sum_over_batch_size", "stop_predicting", "stop_evaluating"}
        | {"_test_counter", "_predict_counter", "_train_counter", "_obj_reference_counts_dict"}
        | {"_self_unconditional_checkpoint_dependencies", "_self_unconditional_dependency_names"}
    )


class _Layer(_Object):
    never_sent = "model"

    def parts(self, value: Any) -> Iterable[Any]:
        layers = getattr(value, "_flatten_layers", None)
        return list(layers()) if callable(layers) else ()


class _Model(_Layer):
    def weights(self, value: Any) -> list[Any]:
        return list(value.get_weights()) if value.built else []


class _Optimizer(_Object):
    never_sent = "optimizer"


_PACKAGES = ("keras", "tf_keras")
LIBRARY = Library(
    {
        f"{package}.{name}": adapter
        for package in _PACKAGES
        for name, adapter in (("Layer", _Layer()), ("Model", _Model()), ("Optimizer", _Optimizer()))
    },
    others=_Object(),
)
