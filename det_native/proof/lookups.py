"""What functions of the user's read beside their arguments: globals, closures and other functions."""

from __future__ import annotations

import enum
import functools
import itertools
import pathlib
import types
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.edges import kind_of
from det_native.heap.ownership import is_library_of_ours, is_users_module
from det_native.inspection.attributes import changed_names, class_settings
from det_native.inspection.parts import names_looked_up, parts_of
from det_native.inspection.registry import adapter_of
from det_native.proof.configurations import functions_held
from det_native.proof.content import PLAIN, closure_of
from det_native.proof.inputs import Input
from det_native.proof.loop_code import LOOP, bound_by
from det_native.schema.proof import Role

_MOST_FUNCTIONS = 300
_PARTS = 100
_DEPTH = 2
_PLAIN = (*PLAIN, float, enum.Enum, pathlib.PurePath)
_CONTAINERS = (list, tuple, set, frozenset, range, deque, Mapping)


def read_by(roots: Mapping[str, Any], without: Iterable[Any] = ()) -> dict[str, Input]:
    """Return what code reads beside its arguments, as inputs by what they are called in messages.

    Parameters
    ----------
    roots : mapping of str to value
        Functions, objects of the user's classes, modules of PyTorch, in lists too; by any name.
    without : iterable
        What is compared by itself, with all that it is made of.

    Returns
    -------
    dict
        The functions' own code, and the variables that they read. What a function itself changes has the role
        ``state``: a counter differs as soon as the function was called.
    """
    skipped = identities_of(without)
    given = {id(function) for root in roots.values() for function in _functions_in(root)}
    functions: dict[int, types.FunctionType] = {}
    queue = deque(function for root in roots.values() for function in _functions_in(root))
    variables: dict[str, tuple[types.FunctionType, Any]] = {}
    changed: set[str] = set()
    while queue and len(functions) < _MOST_FUNCTIONS:
        function = queue.popleft()
        if id(function) in functions:
            continue
        functions[id(function)] = function
        changed |= changed_names(function.__code__)
        if function.__name__ == LOOP:
            changed |= bound_by(function.__code__)
        for name in sorted(names_looked_up(function.__code__) & set(function.__globals__)):
            value = function.__globals__[name]
            queue.extend(_functions_in(value))
            if id(value) not in skipped and _is_compared(value):
                variables.setdefault(name, (function, value))
        for _, value in closure_of(function):
            queue.extend(_functions_in(value))
    found: dict[str, Input] = {}
    for title, bound in _bound_parts(roots):
        if id(bound) not in skipped:
            found[_unused(title, found)] = Input(bound, "code")
    for function in functions.values():
        if function.__name__ == LOOP:
            continue
        role: Role = "code" if id(function) in given else "helper"
        found[_unused(f"the function {function.__qualname__}", found)] = Input(function, role, function.__name__)
    for name, (function, value) in list(variables.items())[:_PARTS]:
        assign = partial(function.__globals__.__setitem__, name)
        role = "state" if name in changed else "variable"
        reader = LOOP if function.__name__ == LOOP else function.__qualname__
        found[f"{name}, read by {reader}"] = Input(value, role, name, assign)
    return found


def _bound_parts(roots: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what functions among the roots are bound to: arguments of a partial, the object of a method."""
    for name, root in roots.items():
        for part in root if isinstance(root, list | tuple) else [root]:
            if isinstance(part, functools.partial):
                yield f"arguments of {name}", part
            elif isinstance(part, types.MethodType) and is_users_module(type(part.__self__).__module__):
                yield f"the object of {name}", part.__self__


def identities_of(values: Iterable[Any]) -> set[int]:
    """Return the identities of values, and of the parts of those that are models."""
    found: set[int] = set()
    for value in values:
        found.add(id(value))
        adapter = adapter_of(type(value))
        found.update(map(id, adapter.parts(value) if adapter is not None else ()))
    return found


def _unused(name: str, names: Container[str]) -> str:
    """Return a name that is not taken yet: many functions are called ``<lambda>``."""
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(text for text in itertools.chain([name], numbered) if text not in names)


def _functions_in(value: Any, depth: int = 0) -> Iterator[types.FunctionType]:
    """Yield the user's functions that a value is, or brings along."""
    if isinstance(value, types.FunctionType):
        if is_users_module(value.__module__ or ""):
            yield value
    elif isinstance(value, type):
        members = [
            member for base in value.__mro__ if is_users_module(base.__module__) for member in vars(base).values()
        ]
        for member in members:
            yield from _functions_of_member(member)
    elif depth <= _DEPTH:
        for part in _brought_along(value):
            yield from _functions_in(part, depth + 1)


def _brought_along(value: Any) -> Iterable[Any]:
    """Return where functions of a value that is none may be."""
    if (few := parts_of(value)) is not None:
        return [part for _, part in few]
    if isinstance(value, list | tuple | set | dict):
        return list(value.values() if isinstance(value, dict) else value)[:_PARTS]
    adapter = adapter_of(type(value))
    if adapter is not None and adapter.is_model:
        return [part for module in adapter.parts(value) for part in (type(module), *functions_held(module))]
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or isinstance(value, types.ModuleType):
        return ()
    parts = list(held.values())[:_PARTS]
    functions = [part for part in parts if (callable(part) or hasattr(part, "__dict__")) and not isinstance(part, type)]
    # Transforms, say: a library's object that is called and keeps a list of others.
    listed = [part for part in held.values() if isinstance(part, list | tuple) and callable(next(iter(part), None))]
    return (type(value), *functions, *listed)


def _functions_of_member(member: Any) -> Iterator[types.FunctionType]:
    """Yield the functions of a member of a class: a method, or those of a property."""
    members = (member.fget, member.fset) if isinstance(member, property) else (member,)
    for part in members:
        # `cached_property` keeps its function as `func`; methods of classes, and what wraps another, theirs, too.
        for name in ("__func__", "func", "__wrapped__"):
            if not isinstance(part, types.FunctionType):
                part = getattr(part, name, part)
        if isinstance(part, types.FunctionType) and is_users_module(part.__module__ or ""):
            yield part


def _is_compared(value: Any) -> bool:
    """Whether a variable holds data or settings; handles, loggers and functions are compared otherwise, or not."""
    adapter = adapter_of(type(value))
    if isinstance(value, _PLAIN + _CONTAINERS) or (adapter is not None and adapter.is_model):
        return True
    if isinstance(value, type):
        return is_users_module(value.__module__) and any(True for _ in class_settings(value))
    if is_library_of_ours(type(value).__module__):
        return False
    kind = kind_of(value)
    if kind.stays and kind.quiet:  # a progress bar, say: it belongs to its process
        return False
    return not isinstance(value, types.ModuleType | types.FunctionType | types.BuiltinFunctionType)
