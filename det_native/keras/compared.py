"""What of a model is compared between the notebook and a worker, without the names that Keras makes up."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import partial
from typing import Any

from det_native.inspection.attributes import settings_in
from det_native.proof.configurations import configuration_of, own_settings
from det_native.proof.inputs import Input, frozen

WEIGHTS = "the model's weights"


def inputs_of_model(model: Any) -> dict[str, Input]:
    """Return the model's layers, optimizer, loss, metrics and weights, by what they are called in messages."""
    layers = [
        [type(layer).__name__, bool(layer.trainable), _shapes_of(layer), _config(layer)] for layer in _layers_in(model)
    ]
    found = {"the model's layers": Input(frozen(layers), "layers")}
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        # A schedule of the user's may tell nothing of itself: its attributes count, too.
        schedule = getattr(optimizer, "_learning_rate", None)
        settings = [type(optimizer).__name__, _config(optimizer), _config(schedule)]
        found["the optimizer"] = Input(frozen(settings), "optimizer")
    own = own_settings(model)
    if own:
        found["the model's settings"] = Input(frozen(own), "layers")
    weights_of_losses = _loss_weights_of(model)
    if weights_of_losses is not None:
        found["the weights of losses"] = Input(frozen(weights_of_losses), "loss")
    loss = getattr(model, "loss", None)
    if loss is not None:
        found["the loss"] = Input(frozen(_named(loss)), "loss")
    metrics = [_named(metric) for metric in _metrics_of(model) if metric is not None]
    if metrics:
        found["the metrics"] = Input(frozen(metrics), "metrics")
    weights = weights_of(model)
    return found | {WEIGHTS: Input(weights, "weights", assign=partial(_assign_weights, model))}


def code_of(model: Any) -> dict[str, Any]:
    """Return what of a model may have code of the user's: class, layers, loss, metrics, schedule."""
    schedule = getattr(getattr(model, "optimizer", None), "_learning_rate", None)
    return {
        "model": type(model),
        "layers": _layers_in(model),
        "loss": getattr(model, "loss", None),
        "metrics": _metrics_of(model),
        "schedule": schedule,
    }


def settings_of_callback(callback: Any) -> Input:
    """Return the settings of a callback: attributes that it does not change while it is used."""
    kinds = (bool, int, float, str, list, tuple, dict, types.FunctionType)
    settings = {name: value for name, value in settings_in(callback) if isinstance(value, kinds)}
    return Input(_Attributes(callback, settings), "callback")


class _Attributes(dict[str, Any]):
    """Attributes of an object by name; what is set here is set there."""

    def __init__(self, owner: Any, attributes: Mapping[str, Any]) -> None:
        super().__init__(attributes)
        self._owner = owner

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        setattr(self._owner, name, value)


def weights_of(model: Any) -> list[Any]:
    """Return the weights as arrays; none of a model that is not built yet."""
    return list(model.get_weights()) if model.built else []


def _loss_weights_of(model: Any) -> Any:
    try:
        return (model.get_compile_config() or {}).get("loss_weights")
    except Exception:  # noqa: BLE001 (a model with a compile() of its own)
        return None


def _metrics_of(model: Any) -> list[Any]:
    compiled = getattr(model, "compiled_metrics", None) or getattr(model, "_compile_metrics", None)
    return [getattr(compiled, name, None) for name in ("_user_metrics", "_user_weighted_metrics")]


def _layers_in(model: Any) -> list[Any]:
    inner = [part for layer in model.layers if hasattr(layer, "layers") for part in _layers_in(layer)]
    return [*model.layers, *inner]


def _assign_weights(model: Any, weights: list[Any]) -> None:
    model.set_weights(weights)


def _shapes_of(layer: Any) -> list[Any] | None:
    """Return the shapes of a layer's weights; None of a model in the model that is not built yet."""
    try:
        return [_shape_of(weight) for weight in layer.weights]
    except ValueError:
        return None


def _shape_of(weight: Any) -> Any:
    """Return the shape of a weight; a table of words, which is among them in some layers, has none."""
    shape = getattr(weight, "shape", None)
    return None if shape is None else tuple(shape)


def _config(part: Any) -> Any:
    """Return what a part of a model says of itself."""
    if hasattr(part, "layers"):
        return None  # a model in a model has layers of its own, in its weights
    if not hasattr(part, "get_config"):
        return None
    configuration, functions, _ = configuration_of(part)
    return [configuration, functions] if functions else configuration


def _named(value: Any) -> Any:
    """Return losses or metrics by name, in the structure that they were given in."""
    if isinstance(value, Mapping):
        return {str(key): _named(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_named(part) for part in value]
    if isinstance(value, str | types.FunctionType | partial):
        return value  # of a function, what it is given by the one that made it counts, too
    if isinstance(value, type) or not hasattr(value, "get_config"):
        return getattr(value, "__name__", type(value).__name__)
    return [type(value).__name__, _config(value)]
