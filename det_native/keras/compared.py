"""What of a model is compared between the notebook and a worker, without the names that Keras makes up."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from typing import Any

from det_native.proof.attributes import settings_in

WEIGHTS = "the model's weights"
_COUNTER = re.compile(r"_\d+$")
_LONGEST = 200  # of a text in a configuration; longer ones are code that was written out


def settings_of(model: Any) -> dict[str, Any]:
    """Return the model's layers, optimizer and loss as plain values."""
    layers = [
        [type(layer).__name__, bool(layer.trainable), [_shape_of(one) for one in layer.weights], _config(layer)]
        for layer in model.layers
    ]
    found: dict[str, Any] = {"the model's layers": layers}
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        found["the optimizer"] = [type(optimizer).__name__, _config(optimizer)]
    loss = getattr(model, "loss", None)
    if loss is not None:
        found["the loss"] = _named(loss)
    return found


def code_of(model: Any) -> dict[str, Any]:
    """Return what of a model may have code of the user's: its class, its layers, its loss, its metrics."""
    compiled = getattr(model, "compiled_metrics", None) or getattr(model, "_compile_metrics", None)
    metrics = [getattr(compiled, name, None) for name in ("_user_metrics", "_user_weighted_metrics")]
    layers = dict.fromkeys(type(layer) for layer in _layers_in(model))
    return {"model": type(model), "layers": list(layers), "loss": getattr(model, "loss", None), "metrics": metrics}


def settings_of_callback(callback: Any) -> dict[str, Any]:
    """Return the settings of a callback: attributes that it does not change while it is used."""
    kinds = (bool, int, float, str, list, tuple, dict, types.FunctionType)
    return {name: value for name, value in settings_in(callback) if isinstance(value, kinds)}


def _layers_in(model: Any) -> list[Any]:
    inner = [one for layer in model.layers if hasattr(layer, "layers") for one in _layers_in(layer)]
    return [*model.layers, *inner]


def weights_of(model: Any) -> list[Any]:
    """Return the weights as arrays; none of a model that is not built yet."""
    return list(model.get_weights()) if model.built else []


def _shape_of(weight: Any) -> Any:
    """Return the shape of a weight; a table of words, which is among them in some layers, has none."""
    shape = getattr(weight, "shape", None)
    return None if shape is None else tuple(shape)


def _config(part: Any) -> Any:
    if hasattr(part, "layers"):
        return None  # a model in a model has layers of its own, in its weights
    try:
        return _plain(part.get_config())
    except Exception:  # noqa: BLE001 (a class of the user's that has none)
        return None


def _plain(value: Any) -> Any:
    """Return a configuration without names that are counted up, and without what is no plain value."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items() if key != "name"}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return _COUNTER.sub("", value) if len(value) <= _LONGEST else ""
    if isinstance(value, bool | int | float | type(None)):
        return value
    return float(value) if hasattr(value, "__float__") and not callable(value) else type(value).__name__


def _named(value: Any) -> Any:
    """Return losses by name, in the structure that they were given in."""
    if isinstance(value, Mapping):
        return {str(key): _named(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_named(one) for one in value]
    if isinstance(value, str | types.FunctionType):
        return value  # of a function, what it is given by the one that made it counts, too
    if isinstance(value, type) or not hasattr(value, "get_config"):
        return getattr(value, "__name__", type(value).__name__)
    return [type(value).__name__, _config(value)]
