"""New models of Keras, 2 and 3: by their configuration and the numbers of their variables.

What Keras itself pickles a model by has the time of day in it, and no classes of the notebook.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any

from det_native.heap.edges import ATOMS, KEPT, Difference, Kind, NamedKind, State
from det_native.heap.kinds.functions import global_names
from det_native.heap.ownership import is_users, is_users_module


class OptimizerBesideKind(NamedKind):
    """What an optimizer holds beside its variables and what Keras makes with them, which other files have.

    `kind` reads the whole. Keras's own are private attributes that its code names, and what leads to a variable.
    """

    compared = False

    def __init__(self, kind: NamedKind) -> None:
        self._kind = kind

    def read(self, obj: Any) -> Mapping[Any, Any]:
        cls: Any = type(obj)
        names, saved = _private_names(cls), {*map(id, _variables_of(obj))}
        return {
            label: value
            for label, value in self._kind.read(obj).items()
            if (label[1] if type(label) is tuple else label) not in names and not _leads_to(value, saved)
        }

    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        children, facts, gone = super().difference(obj, before, now, renewed)
        there = self._kind.read(obj)
        return children, facts, [label for label in gone if label not in there]

    def step(self, label: Any) -> str:
        return self._kind.step(label)

    def write(self, obj: Any, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        self._kind.write(obj, values, gone)


@functools.cache
def _private_names(cls: Any) -> frozenset[str]:
    """Return the private names in the code of those bases of a class that are not the user's."""
    functions = (value for base in cls.__mro__ if not is_users(base) for value in vars(base).values())
    codes = (getattr(function, "__code__", None) for function in functions)
    names = (name for code in codes if code for name in global_names(code) if name.startswith("_"))
    return frozenset(("built", *names))  # the one that Keras 3 does not write as private


def _leads_to(value: Any, objects: Container[int]) -> bool:
    """Whether a value is one of some objects, or a container of them."""
    if isinstance(value, dict):
        value = [*value.values()]
    if not isinstance(value, list | tuple):
        return id(value) in objects
    return not ATOMS.issuperset(map(type, value)) and any(_leads_to(part, objects) for part in value)


def kept_optimizer(optimizer: Any, kind: NamedKind) -> Sequence[tuple[Any, Kind]]:
    """Return an optimizer, and the one that it is around, with their variables, as they are read beside other files."""
    kept: list[tuple[Any, Kind]] = [(variable, KEPT) for variable in _variables_of(optimizer)]
    inner = getattr(optimizer, "inner_optimizer", None)
    return [(optimizer, kind), *kept, *(kept_optimizer(inner, kind) if inner is not None else ())]


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
        cls: Any = type(part)
        if not is_users(cls) and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
            raise ValueError(
                f"Keras has made the class {cls.__name__} of a SavedModel, and no configuration makes it again"
            )
        if is_users(cls) and not is_users_module(cls.from_config.__module__):
            inspect.signature(cls).bind(**part.get_config())  # as its class is made there
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
        # That one was built, and for other variables: layers may have been frozen since, or nothing was trained.
        optimizer = model.optimizer = type(optimizer).from_config(optimizer.get_config())
        if not _fits(_variables_of(optimizer), of_optimizer):
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
