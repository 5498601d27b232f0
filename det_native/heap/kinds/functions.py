"""Functions, closure cells, classes and modules."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from det_native.heap.edges import (
    ATOMS,
    BY_NAME,
    VALUE,
    Alike,
    Kind,
    Missing,
    NamedKind,
    ReadMemory,
    SimpleKind,
    State,
    write_new,
)
from det_native.heap.names import MappingKind
from det_native.heap.ownership import is_namespace, is_users, is_users_module

_NOT_COMPARED = frozenset(
    [
        "__dict__",
        "__weakref__",
        "__module__",
        "__doc__",
        "__qualname__",
        "__annotations__",
        "__slotnames__",
        "_abc_impl",
        "__firstlineno__",
        "__static_attributes__",
    ]
)
#: What a label begins with that leads from a function to a variable that its code reads.
READS = "reads"
_OF_A_FUNCTION = "__code__", "__defaults__", "__kwdefaults__"


def is_read(label: Any) -> bool:
    """Whether a label leads to a variable that a function reads."""
    return type(label) is tuple and label[0] == READS


def is_importable(thing: Any, path: str = "") -> bool:
    """Whether a module has this object under a name, by default its own."""
    value: Any = sys.modules.get(getattr(thing, "__module__", None) or type(thing).__module__)
    for name in (path or getattr(thing, "__qualname__", "")).split("."):
        value = getattr(value, name, None)
    return value is thing


def _module_of(thing: Any) -> dict[Any, Any]:
    """Return the module of a function or class of the user's; the notebook's names are among the roots."""
    return {} if thing.__module__ == "__main__" else {("module",): sys.modules.get(thing.__module__)}


class FunctionKind(NamedKind):
    """Code, defaults, attributes and cells; of a library only functions that were made in a call."""

    def read(self, obj: types.FunctionType) -> Mapping[Any, Any]:
        users = is_users(obj)
        if not users and ("<locals>" not in obj.__qualname__ or is_importable(obj)):
            return {}
        cells = zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True)
        values: dict[Any, Any] = {("cell", name): cell for name, cell in cells}
        values |= {name: getattr(obj, name) for name in (_OF_A_FUNCTION if users else _OF_A_FUNCTION[1:])}
        return {**values, **(_module_of(obj) if users else {}), **vars(obj)}

    def step(self, label: Any) -> str:
        return f".{label if isinstance(label, str) else label[-1]}"

    def fits(self, obj: Any, before: State, now: State) -> bool:
        held = [
            [(name, id(child)) for child, name in zip(*state, strict=True) if type(name) is tuple]
            for state in (before, now)
        ]
        return held[0] == held[1]  # the cells are those of the code

    def write(self, obj: types.FunctionType, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        for name, value in values.items():
            if isinstance(name, str):
                setattr(obj, name, value)
        for name in gone:
            vars(obj).pop(name, None)

    def reduce(self, obj: types.FunctionType) -> Any:
        if not is_users(obj) or (obj.__module__ != "__main__" and is_importable(obj)):
            return NotImplemented
        names = obj.__globals__ if obj.__module__ == "__main__" else obj.__module__
        kept = ("__doc__", "__annotations__", "__qualname__")
        state = {name: getattr(obj, name) for name in (*_OF_A_FUNCTION[1:], *kept)} | vars(obj)
        made = (obj.__code__, names, obj.__name__, None, obj.__closure__)
        return make_function, made, state, None, None, write_new


@functools.lru_cache(maxsize=4096)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Return the names that code may look up among the globals, that of functions inside it included.

    Names of attributes are among them: the caller takes those that are globals. Where the code puts names together
    (``globals()[...]``), its texts stand for them, between stars.
    """
    names = {*code.co_names}
    if not names.isdisjoint(("globals", "locals", "vars", "eval")):
        texts = [text for text in code.co_consts if type(text) is str and text.isidentifier()]
        names |= {f"*{text}*" for text in texts} or {"*"}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(names.union(*map(global_names, inner)))


def make_function(code: types.CodeType, names: Any, *parts: Any) -> types.FunctionType:
    """Make a function of the user's again, over the notebook's own names or those of its module."""
    function = types.FunctionType(code, vars(import_module(names)) if isinstance(names, str) else names, *parts)
    function.__module__ = names if isinstance(names, str) else "__main__"
    return function


class PartialKind(Kind):
    """``functools.partial``: its function, and what that is called with."""

    is_listed = True

    def read_state(self, obj: functools.partial[Any]) -> State:
        return (obj.func, obj.args, obj.keywords, vars(obj)), None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return "func", "args", "keywords", "__dict__"

    def step(self, label: Any) -> str:
        return f".{label}"

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        before = self.read_state(obj)[0]
        parts = [old if type(new) is Missing else new for old, new in zip(before, children, strict=True)]
        obj.__setstate__(tuple(parts))


class ReadingKind(FunctionKind):
    """A function that leads to the variables, too, which its code reads by their names."""

    def read(self, obj: types.FunctionType) -> Mapping[Any, Any]:
        values = {label: value for label, value in super().read(obj).items() if label != "module"}
        names = obj.__globals__
        for name in sorted(global_names(obj.__code__) & names.keys()) if is_users(obj) else ():
            value = names[name]
            if _is_part(value):
                values[READS, name] = value
        return values

    def fits(self, obj: Any, before: State, now: State) -> bool:
        cells = [[name for name in state[1] if type(name) is tuple and name[0] != READS] for state in (before, now)]
        return cells[0] == cells[1]  # those of the code

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        own = [place for place, label in enumerate(labels) if type(label) is str or label[0] != READS]
        return [labels[place] for place in own], [children[place] for place in own], None

    def write(self, obj: types.FunctionType, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        super().write(obj, values, gone)
        obj.__globals__.update({name[1]: value for name, value in values.items() if name[0] == READS})


class ReadGeneratorKind(Kind):
    """A generator by what its function was called with; its other variables are there as soon as it has begun."""

    in_place = False
    stays = "a generator"

    def read_state(self, obj: types.GeneratorType[Any, Any, Any]) -> State:
        frame, code = obj.gi_frame, obj.gi_code
        if frame is None or not is_users_module(str(frame.f_globals.get("__name__", ""))):
            return (), None
        variables = frame.f_locals
        names = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name in variables]
        return [variables[name] for name in names], names

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return facts or ()

    def step(self, label: Any) -> str:
        return f" argument {label}"

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return None if facts is None else (labels, children, facts)


class CellKind(NamedKind):
    """What a closure shares with the function around it."""

    is_listed = True

    def read(self, obj: types.CellType) -> Mapping[Any, Any]:
        try:
            return {("content",): obj.cell_contents}
        except ValueError:
            return {}

    def write(self, obj: types.CellType, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        for value in values.values():
            obj.cell_contents = value
        if gone:
            del obj.cell_contents

    def reduce(self, obj: types.CellType) -> Any:
        return types.CellType, (), self.read(obj), None, None, write_new


class ClassKind(MappingKind):
    """A class of the user with its attributes; classes of libraries are not read."""

    def read(self, obj: type) -> Mapping[Any, Any]:
        if not is_users(obj):
            return {}
        values = {name: v for name, v in vars(obj).items() if name not in _NOT_COMPARED and not _is_slot(v)}
        return {**values, **{("base", place): base for place, base in enumerate(obj.__bases__)}, **_module_of(obj)}

    def glance(self, obj: type, read: ReadMemory) -> State:
        children, facts = self.read_state(obj)
        return [*children, type(obj)], facts

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return labels, children, None

    def write(self, obj: type, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        for name, value in values.items():
            if isinstance(name, str):
                type.__setattr__(obj, name, value)
        for name in gone:
            if name in vars(obj):
                type.__delattr__(obj, name)


def _is_slot(value: Any) -> bool:
    return type(value) in (types.MemberDescriptorType, types.GetSetDescriptorType)


class ModuleKind(MappingKind):
    """A module of the user's as a namespace; of a library's, plain values that somebody may have set."""

    def read(self, obj: types.ModuleType) -> Mapping[Any, Any]:
        users = is_namespace(obj)
        return {
            name: value
            for name, value in list(vars(obj).items())
            if name[:2] != "__" and (_is_part(value) if users or _is_module(value) else _is_setting(name, value))
        }

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return labels, children, None

    def write(self, obj: types.ModuleType, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        # A setting of a library that became an object keeps its value here.
        super().write(vars(obj), values, gone if is_namespace(obj) else ())

    def reduce(self, obj: types.ModuleType) -> Any:
        return (import_module, (obj.__name__,)) if obj.__name__ in sys.modules else NotImplemented


def _is_module(value: Any) -> bool:
    return issubclass(type(value), types.ModuleType)


def _is_part(value: Any) -> bool:
    """Whether a module leads to a value: of modules only to those of the user's, `pkg.sub` for one."""
    return not _is_module(value) or is_namespace(value)


def _is_setting(name: str, value: Any) -> bool:
    """Whether a library's name may be a setting; a path, as of the folder for temporary files, is of the process."""
    return name[0] != "_" and type(value) in ATOMS and not (isinstance(value, str) and os.path.isabs(value))


def make_cached(function: Any, parameters: dict[str, Any]) -> Any:
    """Put a cache around a function again; it begins empty."""
    return functools.lru_cache(**parameters)(function)


BY_NAME |= {
    "builtins.function": FunctionKind(),
    "builtins.cell": CellKind(),
    "builtins.type": ClassKind(),
    "builtins.module": ModuleKind(),
    "functools.partial": PartialKind(),
    "functools._lru_cache_wrapper": SimpleKind(
        held=lambda obj: (obj.__wrapped__,), reduce=lambda obj: (make_cached, (obj.__wrapped__, obj.cache_parameters()))
    ),
}
for _name in ("wrapper", "method", "getset", "member", "classmethod"):
    BY_NAME[f"builtins.{_name}_descriptor"] = VALUE
for _name in ("code", "GenericAlias", "UnionType"):
    BY_NAME[f"builtins.{_name}"] = BY_NAME[f"types.{_name}"] = VALUE
