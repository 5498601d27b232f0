"""Whether functions and bound methods keep something from one call to the next, read from their bytecode."""

from __future__ import annotations

import dis
import types
from collections.abc import Collection
from typing import Any

from det_native.capture.vocabulary import CONTAINER_CHANGES

_STORING = frozenset({"STORE_ATTR", "STORE_SUBSCR", "DELETE_ATTR", "DELETE_SUBSCR"})
_LOADING = ("LOAD_FAST", "LOAD_DEREF")
_CODE = types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType


def keeps_state(function: Any, containers: Collection[type]) -> bool:
    """Return whether calling a function may change what it is bound to, or what it closes over.

    Parameters
    ----------
    function : function or method
    containers : collection of type
        Of a method of these, any is taken to change it.
    """
    if isinstance(function, types.MethodType | types.BuiltinMethodType):
        kept = type(function.__self__)
        if kept.__module__ == "__main__":
            return _method_changes(kept, getattr(function, "__func__", None), set())
        return kept in containers
    code = getattr(function, "__code__", None)
    return isinstance(code, types.CodeType) and _changes(code, _closed_over(function, code), None, set())


def _closed_over(function: Any, code: types.CodeType) -> dict[str, bool]:
    """Return the names of the enclosing function, and whether they stand for something that methods may change."""
    names = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = not isinstance(cell.cell_contents, _CODE)
        except ValueError:  # it has no value yet
            names[name] = True
    return names


def _method_changes(owner: type, method: Any, seen: set[str]) -> bool:
    code = getattr(method, "__code__", None)
    if not isinstance(code, types.CodeType) or not code.co_argcount or code.co_qualname in seen:
        return False
    seen.add(code.co_qualname)
    return _changes(code, {code.co_varnames[0]: True}, owner, seen)


def _changes(code: types.CodeType, names: dict[str, bool], owner: type | None, seen: set[str]) -> bool:
    """Return whether a piece of code changes what the names stand for, or binds one of them outside of it."""
    begins: dict[tuple[int | None, ...], bool] = {}  # of expressions that begin with one of the names
    for each in dis.get_instructions(code):
        begin = (None,) if each.positions is None else each.positions[::2]
        if each.opname == "STORE_DEREF" and each.argval in names:
            return True
        if each.opname.startswith(_LOADING):
            given = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            begins.update((begin, names[name]) for name in given if name in names)
        elif begin in begins and begin != (None,):
            if each.opname in _STORING or (begins[begin] and each.argval in CONTAINER_CHANGES):
                return True
            own = getattr(owner, each.argval, None) if owner is not None and isinstance(each.argval, str) else None
            if owner is not None and _method_changes(owner, own, seen):
                return True
    return False
