"""What a loop may change in place, by its code: names whose values are changed where a statement has them."""

from __future__ import annotations

import dis
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from det_native.carried.numbers import is_array, is_tensor
from det_native.inspection.attributes import is_own_module

_ENDS = ("STORE_", "DELETE_", "POP_", "RETURN_", "JUMP_", "RESUME", "END_FOR", "FOR_ITER")
_NAMED = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST_CHECK")
_ASSIGNING = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR", "STORE_SLICE")
#: What a name may stand for that is called, and is not changed by it.
_CODE = type | types.ModuleType | types.FunctionType | types.BuiltinFunctionType | types.MethodType
_CONTAINERS = (list, dict, set, deque, bytearray)
#: What containers of Python have, and their counterparts that cannot be changed do not.
_CHANGING = frozenset({*dir(list), *dir(deque), *dir(dict), *dir(set)}) - {
    *(*dir(tuple), *dir(types.MappingProxyType), *dir(frozenset))
}
_CHANGING_ARRAYS = frozenset({"fill", "sort", "put", "resize", "partition", "itemset", "setflags", "copyto"})


def names_changed(code: types.CodeType, lookup: Callable[[str], Any]) -> frozenset[str]:
    """Return the names of which a statement of the code may change the value in place.

    Parameters
    ----------
    code : code
        Code inside of it counts too.
    lookup : callable
        Gives the value of a name; None where it has none.
    """
    changed = set()
    for names, methods, assigned in _statements(code):
        values = {name: lookup(name) for name in names}
        calls_own = any(map(_may_change_arguments, values.values()))
        for name, value in values.items():
            is_code = isinstance(value, _CODE)
            if not is_code and (calls_own or _may_change(value, methods, assigns=name in assigned)):
                changed.add(name)
    return frozenset(changed)


def _statements(code: types.CodeType) -> Iterator[tuple[set[str], set[str], set[str]]]:
    """Yield of each statement the names that it has, the attributes, and the names to a part of which it may assign."""
    names: set[str] = set()
    methods: set[str] = set()
    assigned: set[str] = set()
    owner = ""  # what stands just before: `self.rows = rows` assigns to a part of self
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if operation in _NAMED or operation.startswith("LOAD_FAST"):
            several = (instruction.argval,) if isinstance(instruction.argval, str) else instruction.argval
            names.update(several)
            owner = several[-1]
            continue
        if operation in ("LOAD_ATTR", "LOAD_METHOD"):
            methods.add(instruction.argval)
        elif operation in ("STORE_ATTR", "DELETE_ATTR") and owner:
            assigned.add(owner)
        elif operation in _ASSIGNING or (operation == "BINARY_OP" and instruction.argrepr.endswith("=")):
            assigned |= names
        if operation.startswith(_ENDS):
            yield names, methods, assigned
            names, methods, assigned = set(), set(), set()
        owner = ""
    yield names, methods, assigned
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _statements(constant)


def _may_change(value: Any, methods: set[str], *, assigns: bool) -> bool:
    if isinstance(value, _CONTAINERS):
        return assigns or not methods.isdisjoint(_CHANGING)
    if is_array(value) or is_tensor(value):
        in_place = any(name[-1:] == "_" and name[:1] != "_" for name in methods)
        return assigns or in_place or not methods.isdisjoint(_CHANGING_ARRAYS)
    return assigns or bool(methods) or (_is_own(value) and not _is_module(value))


def _may_change_arguments(value: Any) -> bool:
    """Whether something that a statement has may be a function of the user's that changes what it is given."""
    if isinstance(value, types.FunctionType | type):
        return is_own_module(value.__module__ or "")
    if isinstance(value, types.MethodType):
        return _may_change_arguments(value.__func__)
    return _is_own(value) and not _is_module(value)


def _is_own(value: Any) -> bool:
    return is_own_module(type(value).__module__)


def _is_module(value: Any) -> bool:
    return hasattr(type(value), "named_parameters")
