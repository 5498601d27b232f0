"""New models of Keras, 2 and 3: by their configuration and the numbers of their variables.

What Keras itself pickles a model by has the time of day in it, and no classes of the notebook.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any

from det_native.heap.ownership import is_users, is_users_module


def parts_of_model(model: Any) -> Sequence[Any]:
    """Return a model's layers, variables and optimizer, in an order that its configuration decides."""
    return [*_layers(model), *(_weights(model) or ()), *filter(None, (getattr(model, "optimizer", None),))]


def reduced_model(model: Any) -> Any:
    """Return how a model, or a layer, is made again, with the classes and functions of cells that it names."""
    weights = _weights(model)
    if weights is None:
        raise ValueError("its weights are not made before its first call")
    bases = type(model).__mro__
    package = next(base for base in bases if base.__name__ == "Layer").__module__.partition(".")[0]
    config = sys.modules[package].saving.serialize_keras_object(model)
    parts = [model, *_layers(model)]
    for part in parts:
        if is_users(type(part)) and not is_users_module(type(part).from_config.__module__):
            inspect.signature(type(part)).bind(**part.get_config())  # as its class is made there
    code = {thing.__name__: thing for thing in (*map(type, parts), *_functions_in(config)) if is_users(thing)}
    of_optimizer = _numbers(_variables_of(getattr(model, "optimizer", None)))
    return rebuilt_model, (package, config, _numbers(weights), of_optimizer, dict(sorted(code.items())))


def rebuilt_model(package: str, config: Any, weights: Any, of_optimizer: Any, code: Mapping[str, Any]) -> Any:
    """Make a model, or a layer, again."""
    saving = import_module(package).saving
    with saving.custom_object_scope(dict(code)):
        model = saving.deserialize_keras_object(config, safe_mode=False)
    optimizer: Any = getattr(model, "optimizer", None)
    if of_optimizer and not _fits(_variables_of(optimizer), of_optimizer):
        # That one was built for other variables: layers may have been frozen since.
        optimizer = model.optimizer = type(optimizer).from_config(optimizer.get_config())
        optimizer.build(_variables_trained(optimizer, model, of_optimizer))
    if not _assigned(_weights(model) or (), weights) or not _assigned(_variables_of(optimizer), of_optimizer):
        raise ValueError(f"its configuration gives another {type(model).__name__}: its variables have other shapes")
    return model


def _layers(model: Any) -> Sequence[Any]:
    layers = getattr(model, "_flatten_layers", None)
    return list(layers()) if callable(layers) else ()


def _functions_in(config: Any) -> Iterator[Any]:
    """Yield the functions of cells that a configuration names."""
    if isinstance(config, dict):
        name = config.get("config") if config.get("class_name") == "function" else None
        function = getattr(sys.modules["__main__"], name, None) if isinstance(name, str) else None
        if isinstance(function, FunctionType):
            yield function
        config = [*config.values()]
    if isinstance(config, list | tuple):
        for part in config:
            yield from _functions_in(part)


def _weights(model: Any) -> Sequence[Any] | None:
    """Return the variables, but for those of metrics; None where the first call makes them and there was none."""
    try:
        variables = list(model.variables)
    except ValueError:
        return None
    of_metrics = set(map(id, getattr(model, "metrics_variables", ())))
    return [variable for variable in variables if id(variable) not in of_metrics]


def _variables_of(optimizer: Any) -> Sequence[Any]:
    variables = getattr(optimizer, "variables", ())
    return list(variables() if callable(variables) else variables)


def _variables_trained(optimizer: Any, model: Any, state: Sequence[Any]) -> Sequence[Any]:
    """Return the variables for which an optimizer had this state."""
    trained = model.trainable_variables
    for variables in (trained, [variable for variable in model.variables if variable.trainable], model.variables):
        other = type(optimizer).from_config(optimizer.get_config())
        other.build(variables)
        if _fits(_variables_of(other), state):
            return list(variables)
    return list(trained)


def _numbers(variables: Sequence[Any]) -> list[Any]:
    import numpy

    return [numpy.asarray(variable) for variable in variables]


def _fits(variables: Sequence[Any], arrays: Sequence[Any]) -> bool:
    return [tuple(variable.shape) for variable in variables] == [array.shape for array in arrays]


def _assigned(variables: Sequence[Any], arrays: Sequence[Any]) -> bool:
    fits = _fits(variables, arrays)
    for variable, array in zip(variables, arrays, strict=True) if fits else ():
        variable.assign(array)
    return fits
