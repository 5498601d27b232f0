"""Python's own objects, for the check and for the look alike: their parts, and what their code looks up."""

from __future__ import annotations

import dis
import functools
import struct
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Parts of an object, each with what follows the object's own path.
Parts = tuple[tuple[str, Any], ...]

_POINTER = struct.calcsize("P")
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was made by a class statement, or looks like one


def _of_partial(value: Any) -> Parts:
    more = ((".__dict__", value.__dict__),) if value.__dict__ else ()
    return (("", value.func), (".args", value.args), ("", value.keywords), *more)


def _of_cell(value: Any) -> Parts:
    try:
        return (("", value.cell_contents),)
    except ValueError:  # nothing is in it yet
        return ()


#: Classes of objects that are nothing but a few others.
PARTS: Mapping[type, Callable[[Any], Parts]] = {
    types.MethodType: lambda value: (("", value.__func__), (".__self__", value.__self__)),
    functools.partial: _of_partial,
    types.CellType: _of_cell,
    staticmethod: lambda value: (("", value.__func__),),
    classmethod: lambda value: (("", value.__func__),),
    property: lambda value: ((".fget", value.fget), (".fset", value.fset), (".fdel", value.fdel)),
}


def parts_of(value: Any) -> Parts | None:
    """Return the parts of an object that is nothing but a few others; None of any other."""
    read = next((PARTS[base] for base in type(value).__mro__ if base in PARTS), None)
    return None if read is None else read(value)


def slots_of(kind: type) -> Iterator[tuple[type, str, Any]]:
    """Yield where objects of a class keep what is not in their ``__dict__``: the class that has the slot, and it."""
    for base in kind.__mro__:
        if not base.__flags__ & HEAP_TYPE:
            continue
        for name, slot in type.__getattribute__(base, "__dict__").items():
            if type(slot) is types.MemberDescriptorType and name not in ("__dict__", "__weakref__"):
                yield base, name, slot


def keeps_attributes_only(kind: type) -> bool:
    """Whether objects of a class have no room for anything but attributes: no base that is written in C has its own."""
    pointers = sum(1 for _ in slots_of(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ == 0 and kind.__basicsize__ == object.__basicsize__ + pointers * _POINTER


@functools.lru_cache(maxsize=4096)
def names_looked_up(code: types.CodeType) -> frozenset[str]:
    """Return the global names that code looks up, that of functions inside it included.

    Where it puts names together (``globals()[...]``), its texts stand for them, between stars.
    """
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    if not names.isdisjoint(("globals", "locals", "vars", "eval")):
        texts = [one for one in code.co_consts if type(one) is str and one.isidentifier()]
        names |= {f"*{text}*" for text in texts} or {"*"}
    return frozenset(names.union(*(names_looked_up(one) for one in inner_codes(code))))


def inner_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of the functions and classes in code."""
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
