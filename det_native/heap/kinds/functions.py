"""Functions, closure cells, classes and modules."""

from __future__ import annotations

import functools
import hashlib
import marshal
import sys
import types
from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import ATOMS, BY_NAME, VALUE, Kind, Left, State
from det_native.heap.ownership import is_users, is_users_module

_EMPTY = object()


def code_digest(code: types.CodeType) -> str:
    """Return a digest of what code does: not of where it stands in its file."""
    seen = hashlib.sha1(usedforsecurity=False)

    def add(one: types.CodeType) -> None:
        seen.update(repr((one.co_code, one.co_names, one.co_varnames, one.co_freevars, one.co_flags)).encode())
        for constant in one.co_consts:
            if isinstance(constant, types.CodeType):
                add(constant)
            elif isinstance(constant, frozenset):
                seen.update(repr(sorted(map(repr, constant))).encode())
            else:
                seen.update(repr(constant).encode())

    add(code)
    return seen.hexdigest()


def is_importable(thing: Any) -> bool:
    """Whether a module has this object under its own name."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for name in getattr(thing, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is thing


class FunctionKind(Kind):
    """Cells, defaults and attributes; of a library only functions that were made in a call."""

    collected = attributed = True

    def take(self, obj: types.FunctionType) -> State:
        users = is_users(obj)
        if not users and ("<locals>" not in obj.__qualname__ or is_importable(obj)):
            return (), None
        home = sys.modules.get(obj.__module__) if users and obj.__module__ != "__main__" else None
        cells = obj.__closure__ or ()
        children = [*cells, obj.__defaults__, obj.__kwdefaults__, home, *vars(obj).values()]
        return children, (len(cells), (*vars(obj),), code_digest(obj.__code__) if users else "")

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        free = obj.__code__.co_freevars
        return [*(("cell", one) for one in free), ("defaults",), ("kwdefaults",), ("module",), *facts[1]]

    def content(self, obj: types.FunctionType, before: Any, now: Any) -> Any:
        return marshal.dumps(obj.__code__)

    def put(self, obj: types.FunctionType, children: Sequence[Any], facts: Any, content: Any) -> None:
        if facts is None:
            return
        count, names, code = facts
        if code and code_digest(obj.__code__) != code:
            obj.__code__ = marshal.loads(content)
        obj.__defaults__, obj.__kwdefaults__ = children[count], children[count + 1]
        vars(obj).clear()
        vars(obj).update(zip(names, children[count + 3 :], strict=True))

    def reduce(self, obj: types.FunctionType) -> Any:
        if not is_users(obj) or (obj.__module__ != "__main__" and is_importable(obj)):
            return NotImplemented
        state = (obj.__defaults__, obj.__kwdefaults__, vars(obj), obj.__doc__, obj.__annotations__)
        made = (marshal.dumps(obj.__code__), obj.__module__, obj.__globals__, obj.__name__, obj.__qualname__, obj.__closure__)
        return make_function, made, state, None, None, fill_function


def make_function(code: bytes, module: str, names: Any, name: str, full: str, cells: Any) -> types.FunctionType:
    """Make a function of the user's again, over the notebook's own names."""
    names = names if isinstance(names, dict) else vars(sys.modules[module])
    function = types.FunctionType(marshal.loads(code), names, name, None, cells)
    function.__qualname__, function.__module__ = full, module
    return function


def fill_function(function: types.FunctionType, state: Any) -> None:
    """Give a function what may lead back to it."""
    function.__defaults__, function.__kwdefaults__, attributes, function.__doc__, function.__annotations__ = state
    vars(function).update(attributes)


class CellKind(Kind):
    collected = True

    def take(self, obj: types.CellType) -> State:
        try:
            return (obj.cell_contents,), None
        except ValueError:
            return (), None

    def put(self, obj: types.CellType, children: Sequence[Any], facts: Any, content: Any) -> None:
        if not children:
            del obj.cell_contents
        elif not isinstance(children[0], Left):
            obj.cell_contents = children[0]

    def reduce(self, obj: types.CellType) -> Any:
        return types.CellType, (), self.take(obj)[0], None, None, fill_cell


def fill_cell(cell: types.CellType, state: Any) -> None:
    """Give a cell what may lead back to it."""
    if state:
        cell.cell_contents = state[0]


class ClassKind(Kind):
    """A class of the user's with all that stands in it; a library's holds nothing of interest."""

    _skipped = frozenset({"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "_abc_impl", "__annotations__", "__slotnames__"})

    def take(self, obj: type) -> State:
        if not is_users(obj):
            return (), None
        held = {n: v for n, v in sorted(vars(obj).items()) if n not in self._skipped and not self._is_slot(v)}
        home = sys.modules.get(obj.__module__) if obj.__module__ != "__main__" else None
        return [*held.values(), *obj.__bases__, home], (*held,)

    @staticmethod
    def _is_slot(value: Any) -> bool:
        return isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [*facts, *(("base", n) for n in range(len(children) - len(facts) - 1)), ("module",)]

    def put(self, obj: type, children: Sequence[Any], facts: Any, content: Any) -> None:
        if facts is None:
            return
        now = vars(obj)
        for name in [n for n in now if n not in self._skipped and n not in facts and not self._is_slot(now[n])]:
            type.__delattr__(obj, name)
        for name, value in zip(facts, children, strict=False):
            if not isinstance(value, Left) and now.get(name, _EMPTY) is not value:
                type.__setattr__(obj, name, value)


class ModuleKind(Kind):
    """A module of the user's as a namespace; of a library's, plain values that somebody may have set."""

    def take(self, obj: types.ModuleType) -> State:
        users = is_users_module(obj.__name__)
        names = [
            name
            for name, value in list(vars(obj).items())
            if name[:2] != "__" and (users or type(value) in ATOMS) and not isinstance(value, types.ModuleType)
        ]
        return [vars(obj)[name] for name in names], (*names,)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return facts

    def put(self, obj: types.ModuleType, children: Sequence[Any], facts: Any, content: Any) -> None:
        for name, value in zip(facts, children, strict=True):
            if not isinstance(value, Left) and vars(obj).get(name, _EMPTY) is not value:
                vars(obj)[name] = value
        if is_users_module(obj.__name__):
            for name in {*self.take(obj)[1]} - {*facts}:
                del vars(obj)[name]

    def reduce(self, obj: types.ModuleType) -> Any:
        return import_again, (obj.__name__,)


def import_again(name: str) -> types.ModuleType:
    """Return a module by its name."""
    __import__(name)
    return sys.modules[name]


class PartialKind(Kind):
    collected = True

    def take(self, obj: functools.partial[Any]) -> State:
        return (obj.func, obj.args, *obj.keywords.values(), *vars(obj).values()), ((*obj.keywords,), (*vars(obj),))

    def put(self, obj: functools.partial[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        middle = 2 + len(facts[0])
        words = dict(zip(facts[0], children[2:middle], strict=True))
        obj.__setstate__((children[0], children[1], words, dict(zip(facts[1], children[middle:], strict=True))))


class CachedKind(Kind):
    """A function with ``lru_cache``; a new one begins with an empty cache."""

    in_place = False

    def take(self, obj: Any) -> State:
        return (obj.__wrapped__,), None

    def reduce(self, obj: Any) -> Any:
        return make_cached, (obj.__wrapped__, obj.cache_parameters())


def make_cached(function: Any, parameters: dict[str, Any]) -> Any:
    """Put a cache around a function again."""
    return functools.lru_cache(**parameters)(function)


BY_NAME |= {
    "builtins.function": FunctionKind(),
    "builtins.cell": CellKind(),
    "builtins.type": ClassKind(),
    "builtins.module": ModuleKind(),
    "functools.partial": PartialKind(),
    "functools._lru_cache_wrapper": CachedKind(),
}
for _name in ("wrapper_descriptor", "method_descriptor", "getset_descriptor", "member_descriptor", "classmethod_descriptor"):
    BY_NAME[f"builtins.{_name}"] = VALUE
for _name in ("code", "GenericAlias", "UnionType"):
    BY_NAME[f"builtins.{_name}"] = BY_NAME[f"types.{_name}"] = VALUE
