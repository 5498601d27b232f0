"""What is set for the whole process: folders, levels of logging, settings and patches of libraries.

Of variables of the environment Python itself tells, and by whom they are set: see ``outside``.
"""

from __future__ import annotations

import logging
import os
import sys
import types
from collections.abc import Hashable, Mapping
from typing import Any

from det_native.heap.ownership import is_library_file, is_users, is_users_module
from det_native.process.settings import library_settings

_HEAP_TYPE = 1 << 9  # of a class: a class statement has made it, or what looks like one
_RECURSION = "the recursion limit"
_LOGGER = "the level of logger "


def process_state() -> dict[str, Hashable]:
    """Return what is set, by a name that a person understands."""
    state: dict[str, Hashable] = {}
    state["sys.path"] = _search_path()
    state["the working directory"] = _folder()
    state[_RECURSION] = sys.getrecursionlimit()
    if decimal := sys.modules.get("decimal"):
        context = decimal.getcontext()  # without its flags, which each sum sets
        state["the context of decimal"] = str((context.prec, context.rounding, context.traps))
    return state | _logging() | library_settings()


def _search_path() -> tuple[str, ...]:
    """Return where modules are looked for, without folders of installed packages, which these add when imported."""
    return tuple(path for path in sys.path if not path or not is_library_file(path))


def module_attributes(namespace: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the identity of what the modules and classes of libraries hold that have a name in the notebook."""
    found: dict[str, dict[str, int]] = {}
    for own_name, value in list(namespace.items()):
        if type(value) is types.ModuleType and value.__name__ not in found:
            found[value.__name__] = {name: id(one) for name, one in list(vars(value).items()) if _counts(one)}
        elif is_library_class(value):
            body = type.__getattribute__(value, "__dict__")
            found[own_name] = {name: id(one) for name, one in list(body.items()) if not name.startswith("_")}
    return found


def is_library_class(value: object) -> bool:
    """Whether a value is a class of a library, whose attributes can be set."""
    if not issubclass(type(value), type):
        return False
    kind: Any = value
    home = type.__getattribute__(kind, "__dict__").get("__module__")
    made = bool(kind.__flags__ & _HEAP_TYPE)
    return made and isinstance(home, str) and not is_users_module(home)


def what_was_set(before: Mapping[str, Hashable], now: Mapping[str, Hashable], source: str) -> frozenset[str]:
    """Return the names of what differs; of a library that was loaded in between nothing is known.

    Libraries make loggers of their own when they are used: a new one counts if the cell's text names it. Some set the
    recursion limit when they are loaded: it counts if the text sets it.
    """
    changed = {name for name in now if name in before and now[name] != before[name]}
    if "setrecursionlimit" not in source:
        changed.discard(_RECURSION)
    loggers = {name for name in now.keys() - before.keys() if name.startswith(_LOGGER)}
    return frozenset(changed | {name for name in loggers if name.removeprefix(_LOGGER) in source})


def what_was_patched(
    before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]], namespace: Mapping[str, Any]
) -> frozenset[str]:
    """Return the attributes of classes that are others, and those of modules that are now the user's code.

    What a library replaces in its modules is its own.
    """
    return frozenset(
        f"{owner}.{name}"
        for owner in before.keys() & now.keys()
        for name, one in now[owner].items()
        if before[owner].get(name) != one
        and (owner not in sys.modules or _is_the_users(getattr(sys.modules[owner], name, None), namespace))
    )


def _is_the_users(one: Any, namespace: Mapping[str, Any]) -> bool:
    if type(one) is types.FunctionType:
        return one.__globals__ is namespace or is_users(one)
    return issubclass(type(one), type) and is_users(one)


def _counts(one: object) -> bool:
    return isinstance(one, (types.FunctionType, types.BuiltinFunctionType, type))


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _logging() -> dict[str, Hashable]:
    """Return the levels of loggers, but for those that libraries make for themselves when they are loaded."""
    found = {"the level of logging": (logging.root.level, logging.root.disabled)}
    for name, one in list(logging.root.manager.loggerDict.items()):
        if isinstance(one, logging.Logger) and name.partition(".")[0] not in sys.modules:
            found[f"{_LOGGER}{name}"] = (one.level, one.disabled)
    return dict(found)
