"""Functions, closure cells, classes and modules."""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from det_native.heap.edges import ATOMS, BY_NAME, VALUE, Kind, Left, State
from det_native.heap.names import NamesKind
from det_native.heap.ownership import is_users, is_users_module


def code_digest(code: types.CodeType) -> str:
    """Return a digest of what code does: not of where it stands in its file."""
    seen = hashlib.sha1(usedforsecurity=False)

    def add(part: types.CodeType) -> None:
        seen.update(repr((part.co_code, part.co_names, part.co_varnames, part.co_freevars, part.co_flags)).encode())
        for constant in part.co_consts:
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
        return [*(("cell", name) for name in free), ("defaults",), ("kwdefaults",), ("module",), *facts[1]]

    def step(self, label: Any) -> str:
        return f".{label if isinstance(label, str) else label[-1]}"

    def content(self, obj: types.FunctionType, before: Any, now: Any) -> Any:
        return marshal.dumps(obj.__code__) if before is None or before[2] != now[2] else b""

    def put(self, obj: types.FunctionType, children: Sequence[Any], facts: Any, content: Any) -> None:
        count, names, _ = facts
        if content:
            obj.__code__ = marshal.loads(content)
        defaults, keywords = children[count : count + 2]
        if not isinstance(defaults, Left):
            obj.__defaults__ = defaults
        if not isinstance(keywords, Left):
            obj.__kwdefaults__ = keywords
        before = dict(vars(obj))
        vars(obj).clear()
        for name, value in zip(names, children[count + 3 :], strict=True):
            if not isinstance(value, Left):
                vars(obj)[name] = value
            elif name in before:
                vars(obj)[name] = before[name]

    def reduce(self, obj: types.FunctionType) -> Any:
        if not is_users(obj) or (obj.__module__ != "__main__" and is_importable(obj)):
            return NotImplemented
        state = (obj.__defaults__, obj.__kwdefaults__, vars(obj), obj.__doc__, obj.__annotations__)
        names = None if is_users_module(obj.__module__) and obj.__module__ != "__main__" else obj.__globals__
        made = (marshal.dumps(obj.__code__), obj.__module__, names, obj.__name__, obj.__qualname__, obj.__closure__)
        return make_function, made, state, None, None, fill_function


def make_function(code: bytes, module: str, names: Any, name: str, full: str, cells: Any) -> types.FunctionType:
    """Make a function of the user's again, over the notebook's own names or those of its module."""
    if not isinstance(names, dict):
        names = vars(import_again(module))
    function = types.FunctionType(marshal.loads(code), names, name, None, cells)
    function.__qualname__, function.__module__ = full, module
    return function


def fill_function(function: types.FunctionType, state: Any) -> None:
    """Give a function what may lead back to it."""
    function.__defaults__, function.__kwdefaults__, attributes, function.__doc__, function.__annotations__ = state
    vars(function).update(attributes)


class CellKind(Kind):
    """What a closure shares with the function around it."""

    def take(self, obj: types.CellType) -> State:
        try:
            return (obj.cell_contents,), None
        except ValueError:
            return (), None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return ("content",)

    def step(self, label: Any) -> str:
        return ""

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


class ClassKind(NamesKind):
    """A class of the user's with all that stands in it; a library's holds nothing of interest."""

    _skipped = frozenset(
        {
            "__dict__",
            "__weakref__",
            "__module__",
            "__doc__",
            "__qualname__",
            "__annotations__",
            "__slotnames__",
            "_abc_impl",
        }
    )

    def names(self, obj: type) -> Mapping[str, Any]:
        if not is_users(obj):
            return {}
        return {name: value for name, value in vars(obj).items() if name not in self._skipped and not _is_slot(value)}

    def others(self, obj: type) -> Sequence[Any]:
        if not is_users(obj):
            return ()
        return *obj.__bases__, sys.modules.get(obj.__module__) if obj.__module__ != "__main__" else None

    def bind(self, obj: type, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        for name, value in values.items():
            type.__setattr__(obj, name, value)
        for name in gone:
            if name in vars(obj):
                type.__delattr__(obj, name)


def _is_slot(value: Any) -> bool:
    return isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)


class ModuleKind(NamesKind):
    """A module of the user's as a namespace; of a library's, plain values that somebody may have set."""

    def names(self, obj: types.ModuleType) -> Mapping[str, Any]:
        users = is_users_module(obj.__name__)
        return {
            name: value
            for name, value in list(vars(obj).items())
            if name[:2] != "__" and not isinstance(value, types.ModuleType) and (users or _is_setting(value))
        }

    def bind(self, obj: types.ModuleType, values: Mapping[str, Any], gone: Sequence[str]) -> None:
        vars(obj).update(values)
        for name in gone if is_users_module(obj.__name__) else ():  # a library's that is no setting any more stays
            vars(obj).pop(name, None)

    def reduce(self, obj: types.ModuleType) -> Any:
        return import_again, (obj.__name__,)


def _is_setting(value: Any) -> bool:
    """Whether a value may be a setting; a path, as of the folder for temporary files, belongs to the process."""
    return type(value) in ATOMS and not (isinstance(value, str) and os.path.isabs(value))


def import_again(name: str) -> types.ModuleType:
    """Return a module by its name."""
    __import__(name)
    return sys.modules[name]


class PartialKind(Kind):
    """``functools.partial``."""

    def take(self, obj: functools.partial[Any]) -> State:
        return (obj.func, obj.args, *obj.keywords.values(), *vars(obj).values()), ((*obj.keywords,), (*vars(obj),))

    def put(self, obj: functools.partial[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        middle = 2 + len(facts[0])
        keywords = dict(zip(facts[0], children[2:middle], strict=True))
        partial: Any = obj
        partial.__setstate__((children[0], children[1], keywords, dict(zip(facts[1], children[middle:], strict=True))))


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
for _name in (
    "wrapper_descriptor",
    "method_descriptor",
    "getset_descriptor",
    "member_descriptor",
    "classmethod_descriptor",
):
    BY_NAME[f"builtins.{_name}"] = VALUE
for _name in ("code", "GenericAlias", "UnionType"):
    BY_NAME[f"builtins.{_name}"] = BY_NAME[f"types.{_name}"] = VALUE
