"""What an object of Keras says of itself, without what is counted up or compiled in each process."""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

from det_native.heap.ownership import is_users_module
from det_native.inspection.attributes import assigned_by, class_settings, settings_in
from det_native.proof.source import is_marshalled_code

_COUNTER = re.compile(r"_\d+$")
_MOST_FUNCTIONS = 20


def configuration_of(value: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the configuration of an object, the functions of the user's that it holds, and its weights.

    Parameters
    ----------
    value : object
        A layer, model, loss, metric, optimizer or schedule: what has ``get_config()``.
    """
    try:
        configuration = plain_configuration(value.get_config())
    except Exception:  # noqa: BLE001 (a class of the user's that has none, as a part of it, too)
        configuration = _public_numbers(value)
    own = own_settings(value)  # what its configuration leaves out
    if own:
        configuration = [configuration, own]
    weights = []
    if getattr(value, "built", True) and hasattr(type(value), "trainable_weights"):
        try:
            weights = [weight for weight in value.weights if hasattr(weight, "shape")]
        except Exception:  # noqa: BLE001 (a model that has none yet)
            weights = []
    return configuration, functions_held(value), weights


def _public_numbers(value: Any) -> dict[str, Any]:
    """Return the plain public attributes of an object that does not tell its configuration."""
    kinds = (bool, int, float)
    return {name: part for name, part in vars(value).items() if type(part) in kinds and not name.startswith("_")}


def own_settings(value: Any) -> dict[str, Any]:
    """Return the settings of an object of a user's class, and of that class; private ones are the library's.

    Those are plain values, tensors, and objects with a configuration that are not layers: an optimizer, a schedule.
    """
    if not is_users_module(type(value).__module__):
        return {}
    # What has a configuration is not a state, though a method has set it: `compile()`, say.
    configured = {name: part for name, part in vars(value).items() if hasattr(part, "get_config")}
    attributes = {**dict(class_settings(type(value))), **dict(settings_in(value)), **configured}
    kind: Any = type(value)
    assigned = assigned_by(kind)
    return {
        name: plain_configuration(attribute)
        for name, attribute in attributes.items()
        if (not name.startswith("_") or name in assigned) and _is_setting(attribute)
    }


def _is_setting(value: Any) -> bool:
    if isinstance(value, bool | int | float | str | tuple | list | Mapping | functools.partial | None):
        return True
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return not hasattr(value, "assign")  # a variable is a weight
    return (
        hasattr(value, "get_config")
        and not hasattr(type(value), "weights")
        and not hasattr(type(value), "update_state")
    )


def functions_held(value: Any) -> list[types.FunctionType]:
    """Return the user's functions among the attributes of an object: that of a ``Lambda`` layer, say."""
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return []
    functions = [each for each in held.values() if isinstance(each, types.FunctionType)]
    return [function for function in functions if is_users_module(function.__module__ or "")][:_MOST_FUNCTIONS]


def plain_configuration(value: Any) -> Any:
    """Return a configuration without names that are counted up, code that was compiled, and what is not plain."""
    if isinstance(value, Mapping):
        return {str(key): plain_configuration(part) for key, part in value.items() if key != "name"}
    if isinstance(value, list | tuple):
        return [plain_configuration(part) for part in value]
    if isinstance(value, str):
        return "<code>" if is_marshalled_code(value) else _COUNTER.sub("", value)
    if isinstance(value, bool | int | float | type(None)):
        return value
    if isinstance(value, functools.partial):
        return value
    if isinstance(value, types.FunctionType) and is_users_module(value.__module__ or ""):
        return value
    if hasattr(value, "numpy") and hasattr(value, "shape"):
        try:
            return value.numpy()
        except Exception:  # noqa: BLE001 (a tensor of a graph has no value)
            return type(value).__name__
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value
    if hasattr(value, "get_config"):
        return [type(value).__name__, configuration_of(value)[0]]
    return float(value) if hasattr(value, "__float__") and not callable(value) else type(value).__name__
