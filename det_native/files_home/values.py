"""Values that a name leads to without running code, and the texts in them that may be paths."""

from __future__ import annotations

import argparse
import ast
import functools
import os
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

from det_native.capture.observation.kinds import is_of_det_native, is_own
from det_native.capture.value_paths import may_be_path
from det_native.inspection.attributes import is_library_of_ours

_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset)
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
#: Parts of values that are looked at for one question.
_MOST = 10_000


def static_value(node: ast.expr, lookup: Callable[[str], Any]) -> Any:
    """Return what a name, or what is in it by attributes and constant keys, stands for; None where code would run."""
    match node:
        case ast.Name(id=name):
            return lookup(name)
        case ast.Attribute(value=of, attr=name):
            owner = static_value(of, lookup)
            if isinstance(owner, types.ModuleType):
                # Ours load what they are asked for.
                return getattr(owner, name, None) if is_library_of_ours(owner.__name__) else vars(owner).get(name)
            if isinstance(owner, type):
                return next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
            if is_plain_object(owner):
                member = next((vars(base)[name] for base in type(owner).__mro__ if name in vars(base)), None)
                return vars(owner).get(name, member)
        case ast.Subscript(value=of, slice=ast.Constant(value=key)):
            whole = static_value(of, lookup)
            try:
                return whole[key] if type(whole) in (dict, list, tuple) else None
            except (LookupError, TypeError):
                return None
    return None


def is_plain_object(value: Any) -> bool:
    """Whether an object is of a class of the user's, and gives its attributes as Python does."""
    kind = type(value)
    if issubclass(kind, (type, types.ModuleType, types.FunctionType)):
        return False
    if issubclass(kind, _NAMESPACES):
        return True
    home = kind.__module__
    if is_of_det_native(kind) or not isinstance(home, str) or not (home == "__main__" or is_own(home)):
        return False
    return kind.__dictoffset__ != 0 and all("__getattribute__" not in vars(base) for base in kind.__mro__[:-1])


def texts_in(value: Any, ends: Collection[type], *, attributes: bool = False) -> Iterator[str]:
    """Yield the texts in a value that may be paths.

    Parameters
    ----------
    value
        Plain data, or objects of the user's classes; what libraries hold in theirs is not looked at.
    ends : collection of type
        Objects of these classes are not looked into.
    attributes : bool
        Look into any object's attributes.
    """
    waiting, seen, room = [value], dict[int, Any](), _MOST
    last = frozenset(ends)
    while waiting and room:
        room -= 1
        part = waiting.pop()
        kind = type(part)  # what an object says of its own class need not be so
        if issubclass(kind, str):
            if may_be_path(part):
                yield part
        elif issubclass(kind, os.PathLike):
            yield os.fsdecode(part)
        elif id(part) in seen or not last.isdisjoint(kind.__mro__[:-1]):
            continue
        elif issubclass(kind, dict):
            seen[id(part)] = part
            waiting.extend(dict.values(part))
        elif base := next((base for base in _CONTAINERS if issubclass(kind, base)), None):
            seen[id(part)] = part
            waiting.extend(base.__iter__(part))
        elif isinstance(part, dict):  # a wrapper of one
            seen[id(part)] = part
            with suppress(Exception):
                waiting.extend(part.values())
        elif is_plain_object(part) or (attributes and not callable(part)):
            seen[id(part)] = part
            with suppress(Exception):  # objects may raise whatever they are asked
                waiting.extend(vars(part).values())


def functions_in(value: Any) -> Iterator[types.FunctionType]:
    """Yield the functions that are attributes of an object: callbacks have them of their users."""
    waiting = list(vars(value).values()) if hasattr(value, "__dict__") else []
    while waiting:
        part = waiting.pop()
        if isinstance(part, functools.partial):
            waiting.append(part.func)
        elif isinstance(part, types.MethodType):
            waiting.append(part.__func__)
        elif isinstance(part, types.FunctionType):
            yield part
