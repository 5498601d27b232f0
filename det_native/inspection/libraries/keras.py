"""Keras: layers, models, and what its objects keep of having been used.

Keras 2 and Keras 3 share this file: of both, the classes have the same names, and only their random streams differ.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any

from det_native.heap.ownership import is_users_module
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
    can_be_rebuilt = True

    def parts(self, value: Any) -> Iterable[Any]:
        layers = getattr(value, "_flatten_layers", None)
        return list(layers()) if callable(layers) else ()

    def state(self, value: Any) -> Any:
        """Return the numbers of its variables, and of those of the optimizer that it was compiled with, once made."""
        own = _weights(value)
        if own is None:
            return None
        return _numbers(own), _numbers(_variables_of(getattr(value, "optimizer", None)))

    def put_state(self, value: Any, state: Any) -> bool:
        """Take them where all shapes are the same; an optimizer that has not begun is built for it."""
        weights, of_optimizer = state
        own = _weights(value)
        if own is None:
            return False
        optimizer: Any = getattr(value, "optimizer", None)
        fits = _fits(_variables_of(optimizer), of_optimizer)
        if not fits and hasattr(optimizer, "build") and not getattr(optimizer, "built", False):
            optimizer.build(_variables_that_it_trained(optimizer, value, of_optimizer))
        if of_optimizer and not _fits(_variables_of(optimizer), of_optimizer):
            return False
        if not _assigned(own, weights):
            return False
        return not of_optimizer or _assigned(_variables_of(optimizer), of_optimizer)

    def build_as(self, value: Any, other: Any) -> None:
        """Build a layer, or a model, that its first call would build."""
        config = other.get_build_config() if other.built and not value.built else None
        if config:
            value.build_from_config(config)

    def shared_parts(self, value: Any) -> Sequence[Any]:
        """Return its layers, its variables and its optimizer."""
        return [*self.parts(value), *(_weights(value) or ()), *filter(None, (getattr(value, "optimizer", None),))]

    def reduced(self, value: Any) -> tuple[Any, ...] | None:
        """Return its configuration with the numbers, and the classes and functions of cells that it names.

        What Keras itself is pickled by has the time of day in it.
        """
        state = self.state(value)
        if state is None:
            raise ValueError("its weights are not made before its first call")
        library = type(value).__mro__[[base.__name__ for base in type(value).__mro__].index("Layer")].__module__
        package = library.partition(".")[0]
        config = sys.modules[package].saving.serialize_keras_object(value)
        parts = [value, *self.parts(value)]
        for part in parts:
            if is_users_module(type(part).__module__) and not is_users_module(type(part).from_config.__module__):
                inspect.signature(type(part)).bind(**part.get_config())  # as its class is made there
        classes = set(map(type, parts))
        code = {one.__name__: one for one in (*classes, *_functions_in(config)) if is_users_module(one.__module__)}
        return _rebuilt, (package, config, state, dict(sorted(code.items())))


def _rebuilt(package: str, config: Any, state: Any, code: Any) -> Any:
    """Return a model, or a layer, that was pickled."""
    saving = import_module(package).saving
    with saving.custom_object_scope(code):
        model = saving.deserialize_keras_object(config, safe_mode=False)
    optimizer: Any = getattr(model, "optimizer", None)
    of_optimizer = state[1]
    if of_optimizer and hasattr(optimizer, "build") and not _fits(_variables_of(optimizer), of_optimizer):
        model.optimizer = type(optimizer).from_config(optimizer.get_config())  # that one was built for other variables
    if not _Layer().put_state(model, state):
        raise ValueError(f"its configuration gives another {type(model).__name__}: its variables have other shapes")
    return model


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


def _weights(value: Any) -> Sequence[Any] | None:
    """Return the variables of a layer, or of a model; None where its first call makes them and there was none.

    Those of metrics, which a model has once it was evaluated, are none of its own.
    """
    try:
        variables = list(value.variables)
    except ValueError:
        return None
    of_metrics = set(map(id, getattr(value, "metrics_variables", ())))
    return [one for one in variables if id(one) not in of_metrics]


def _variables_of(optimizer: Any) -> Sequence[Any]:
    variables = getattr(optimizer, "variables", ())
    return list(variables() if callable(variables) else variables)


def _variables_that_it_trained(optimizer: Any, model: Any, state: Sequence[Any]) -> list[Any]:
    """Return the variables for which an optimizer had this state: layers may have been frozen since."""
    kinds = [model.trainable_variables, [one for one in model.variables if one.trainable], model.variables]
    for variables in kinds:
        other = type(optimizer).from_config(optimizer.get_config())
        other.build(variables)
        if _fits(_variables_of(other), state):
            return list(variables)
    return list(model.trainable_variables)


def _numbers(variables: Sequence[Any]) -> list[Any]:
    numpy: Any = import_module("numpy")
    return [numpy.asarray(one) for one in variables]


def _fits(variables: Sequence[Any], arrays: Sequence[Any]) -> bool:
    return [tuple(one.shape) for one in variables] == [array.shape for array in arrays]


def _assigned(variables: Sequence[Any], arrays: Sequence[Any]) -> bool:
    if not _fits(variables, arrays):
        return False
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return True


class _Model(_Layer):
    def weights(self, value: Any) -> list[Any]:
        return list(value.get_weights()) if value.built else []


class _Optimizer(_Object):
    never_sent = "optimizer"

    def state(self, value: Any) -> Any:
        return _numbers(_variables_of(value))

    def put_state(self, value: Any, state: Any) -> bool:
        return _assigned(_variables_of(value), state)


_PACKAGES = ("keras", "tf_keras")
LIBRARY = Library(
    {
        f"{package}.{name}": adapter
        for package in _PACKAGES
        for name, adapter in (("Layer", _Layer()), ("Model", _Model()), ("Optimizer", _Optimizer()))
    },
    others=_Object(),
)
