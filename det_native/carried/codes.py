"""The global names that code reads or sets."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator

_GLOBAL = ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "DELETE_NAME")
_BINDING = ("STORE_GLOBAL", "STORE_NAME", "STORE_FAST", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_NAME")
_OTHER = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_CONST")


@functools.lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that code, and the functions inside of it, look up or bind in a namespace, in their order."""
    names: dict[str, None] = {}
    for instruction in _instructions(code):
        if instruction.opname in _GLOBAL:
            names.setdefault(instruction.argval)
    return tuple(names)


@functools.lru_cache(maxsize=4096)
def globals_bound(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function, and those inside of it, bind in its module."""
    return frozenset(each.argval for each in _instructions(code) if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"))


def read_first(code: types.CodeType, names: frozenset[str]) -> frozenset[str]:
    """Return which of these names the text of code mentions first by reading them: what another round begins with."""
    first: dict[str, bool] = {}
    for instruction in dis.get_instructions(code):
        variable = instruction.opname.startswith(("LOAD_", "STORE_", "DELETE_")) and instruction.opname not in _OTHER
        if variable and instruction.argval in names:
            first.setdefault(instruction.argval, instruction.opname.startswith("LOAD_"))
    inner = {name for one in code.co_consts if isinstance(one, types.CodeType) for name in global_names(one)}
    return frozenset(name for name in names if first.get(name, name in inner))


def names_bound(code: types.CodeType) -> frozenset[str]:
    """Return the names that code binds itself, its own variables too."""
    return frozenset(each.argval for each in dis.get_instructions(code) if each.opname in _BINDING)


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
