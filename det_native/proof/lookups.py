"""What functions of the user's read beside their arguments: globals, closures and other functions."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from det_native.proof.attributes import changed_names, is_own_module, names_looked_up

_MOST_FUNCTIONS = 300
_PARTS = 100
_DEPTH = 2
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_CONTAINERS = (list, tuple, set, frozenset, range, deque, Mapping)


class Part(str):
    """What an input is called, where the notebook's variable is known and content that changes by use is expected.

    Attributes
    ----------
    variable : str
        The variable, empty if there is none.
    """

    variable: str

    @classmethod
    def of(cls, text: str, variable: str = "") -> Part:
        """Return a part of that name."""
        found = cls(text)
        found.variable = variable
        return found


def read_by(roots: Mapping[str, Any], without: Iterable[Any] = ()) -> dict[str, Any]:
    """Return what code reads beside its arguments, as inputs by what they are called in messages.

    Parameters
    ----------
    roots : mapping of str to value
        Functions, objects of the user's classes, modules of PyTorch, in lists too; by any name.
    without : iterable
        What is compared by itself.

    Returns
    -------
    dict
        The functions' own code, and the variables that they read. What a function itself changes is left out: a
        counter differs as soon as the function was called.
    """
    skipped = {id(one) for one in without}
    functions: dict[int, types.FunctionType] = {}
    queue = deque(one for root in roots.values() for one in _functions_in(root))
    variables: dict[str, tuple[Any, str]] = {}
    changed: set[str] = set()
    while queue and len(functions) < _MOST_FUNCTIONS:
        function = queue.popleft()
        if id(function) in functions:
            continue
        functions[id(function)] = function
        changed |= changed_names(function.__code__)
        for name in sorted(names_looked_up(function.__code__) & set(function.__globals__)):
            value = function.__globals__[name]
            queue.extend(_functions_in(value))
            if id(value) not in skipped and _is_compared(value):
                variables.setdefault(name, (value, function.__qualname__))
        for cell in function.__closure__ or ():
            try:
                queue.extend(_functions_in(cell.cell_contents))
            except ValueError:  # nothing is in it yet
                continue
    found: dict[str, Any] = {}
    for function in functions.values():
        found.setdefault(Part.of(f"the function {function.__qualname__}", function.__name__), function)
    for name, (value, reader) in list(variables.items())[:_PARTS]:
        if name not in changed:
            found[Part.of(f"{name}, read by {reader}", name)] = value
    return found


def _functions_in(value: Any, depth: int = 0) -> Iterator[types.FunctionType]:
    """Yield the user's functions that a value is, or brings along."""
    if isinstance(value, types.FunctionType):
        if is_own_module(value.__module__ or ""):
            yield value
    elif isinstance(value, type):
        members = [one for base in value.__mro__ if is_own_module(base.__module__) for one in vars(base).values()]
        yield from (one for member in members if (one := _unwrapped(member)) is not None)
    elif depth <= _DEPTH:
        for one in _brought_along(value):
            yield from _functions_in(one, depth + 1)


def _brought_along(value: Any) -> Iterable[Any]:
    """Return where functions of a value that is none may be."""
    if isinstance(value, types.MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, list | tuple | set | dict):
        return list(value.values() if isinstance(value, dict) else value)[:_PARTS]
    if _is_module(value):
        return dict.fromkeys(type(one) for one in value.modules())
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or isinstance(value, types.ModuleType):
        return ()
    functions = [one for one in list(held.values())[:_PARTS] if callable(one) and not isinstance(one, type)]
    return (type(value), *functions)


def _unwrapped(member: Any) -> types.FunctionType | None:
    """Return the function of a member of a class, None if it is none."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return function if isinstance(function, types.FunctionType) else None


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_compared(value: Any) -> bool:
    """Whether a variable holds data or settings; handles, loggers and models of libraries are none."""
    if isinstance(value, _PLAIN + _CONTAINERS) or _is_module(value):
        return True
    if isinstance(value, type | types.ModuleType | types.FunctionType):
        return False
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return True
    return hasattr(value, "iloc") or is_own_module(type(value).__module__) or isinstance(value, types.SimpleNamespace)
