"""Arguments that an installed library does not take: code for another version of it gives them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any

_UNKNOWN = re.compile(r"^([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'")
_OWN = ("det_native", "det_harness")
# Names of a signature that a message has room for.
_MOST = 12


def argument_advice(error: BaseException) -> str | None:
    """Return what to do about an argument that a function of an installed library does not take.

    Returns
    -------
    str or None
        None for another error, or where the function is no library's.
    """
    found = _UNKNOWN.match(str(error)) if isinstance(error, TypeError) else None
    if found is None:
        return None
    path, argument = found[1].removesuffix(".__init__"), found[2]
    function = _called(error, path, argument)
    library = _library(function)
    if library is None:
        return None
    return (
        f"{library} is installed, whose {path}() has no argument '{argument}'{_taken(function)}: code for another "
        "version gives it. Leave it out."
    )


def _called(error: BaseException, path: str, argument: str) -> Any:
    """Return what has this path in a module that a frame of the error sees, or else in one that is loaded.

    None if it is not there, or there are several that do not take the argument: two libraries may use one name.
    """
    trace, seen = error.__traceback__, []
    while trace is not None:
        seen.append(trace.tb_frame.f_globals)
        trace = trace.tb_next
    loaded = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    for each in reversed(seen):
        if found := _refusing(argument, _of_path(path, [each])):
            return found[0]
    found = _refusing(argument, _of_path(path, loaded))
    return found[0] if len(found) == 1 else None


def _refusing(argument: str, functions: Iterable[Any]) -> list[Any]:
    """Return those that do not take an argument of this name."""
    refusing = []
    for function in functions:
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):  # of C code, which does not say
            refusing.append(function)
            continue
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        if argument not in parameters and not takes_any:
            refusing.append(function)
    return refusing


def _of_path(path: str, places: Iterable[dict[str, Any]]) -> list[Any]:
    first, *rest = path.split(".")
    found: dict[int, Any] = {}
    for place in places:
        value = place.get(first)
        for part in rest:
            value = getattr(value, part, None)
        if callable(value) and getattr(value, "__qualname__", None) == path:
            found[id(value)] = value
    return list(found.values())


def _library(function: Any) -> str | None:
    """Return name and version of the installed library that a function is of; None for the user's own."""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    if not package or package in _OWN:
        return None
    for name in metadata.packages_distributions().get(package, ()):
        return f"{name} {metadata.version(name)}"
    return None


def _taken(function: Callable[..., Any]) -> str:
    try:
        names = [name for name in inspect.signature(function).parameters if name not in ("self", "args", "kwargs")]
    except (TypeError, ValueError):
        return ""
    return f" (it takes {', '.join(names)})" if 0 < len(names) <= _MOST else ""
