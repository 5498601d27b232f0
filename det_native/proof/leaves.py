"""An input divided into leaves: the smallest parts that differ, are named, and can be put right by themselves."""

from __future__ import annotations

import ast
import enum
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from det_native.heap.ownership import is_library_of_ours, is_users_module
from det_native.inspection.attributes import class_settings, settings_in
from det_native.inspection.parts import parts_of
from det_native.inspection.registry import adapter_of
from det_native.proof.content import PLAIN, Content, closure_of, content_of, is_nobodys_data
from det_native.proof.own_values import is_path
from det_native.proof.source import signature_digest, source_digest
from det_native.schema.proof import LeafKind

Put = Callable[[Any], object]

_MOST_LEAVES = 256  # of one input; what comes after them is one leaf
_MOST_ELEMENTS = 16  # of a list that is divided
_MOST_KEYS = 64
_MOST_PLAIN = 4_096  # elements of a container that is one plain value
_DEPTH = 8
_LITERAL_LENGTH = 8_192  # characters


@dataclass(frozen=True)
class Leaf:
    """A part of an input.

    Attributes
    ----------
    path : str
        Where it is in the input: ``.weights[0]``; empty for all of it.
    kind : str
    value : object
        The part itself; None of what only its digest is known.
    content : Content
        Its fingerprints.
    masked : str
        The fingerprint of all that is not the process's own; empty where that is everything.
    put : callable or None
        Puts another value in its place; None where that is not possible.
    """

    path: str
    kind: LeafKind
    value: Any
    content: Content
    masked: str = ""
    put: Put | None = None

    @property
    def place(self) -> tuple[Any, ...] | None:
        """What identifies the place of the part: the same for parts of two inputs that are one object."""
        if not isinstance(self.put, partial):
            return None
        if self.put.func is setattr:
            owner, *names = self.put.args
        else:
            owner, names = getattr(self.put.func, "__self__", self.put.func), list(self.put.args)
        return (id(owner), *map(str, names))

    @property
    def literal(self) -> str:
        """The value as a literal of Python, empty if it has none, or a long one."""
        return _literal_of(self.value) if self.kind == "value" else ""


def leaves_of(value: Any, *, put: Put | None = None, whole: bool = False, skipped: Iterable[int] = ()) -> list[Leaf]:
    """Divide an input into leaves, in an order that is the same in every process.

    Parameters
    ----------
    value : object
    put : callable, optional
        Puts another value in place of all of it.
    whole : bool
        It is one leaf, whatever it is.
    skipped : iterable of int
        Identities of objects that are compared by themselves.
    """
    divider = _Divider(frozenset(skipped))
    if whole:
        divider.add(value, "", "data", put)
    else:
        divider.divide(value, "", put, 0)
    divider.end()
    return divider.leaves


class _Divider:
    def __init__(self, skipped: frozenset[int]) -> None:
        self.leaves: list[Leaf] = []
        self._rest: list[Any] = []
        self._skipped = skipped
        self._inside: set[int] = set()
        self._in_attribute = False

    def divide(self, value: Any, path: str, put: Put | None, depth: int) -> None:
        if len(self.leaves) >= _MOST_LEAVES:
            self._rest.append(value)
        elif _is_ours(value) or id(value) in self._skipped or id(value) in self._inside:
            self._structure(path, type(value).__qualname__)
        elif _is_plain(value):
            self.add(value, path, "value", put)
        elif depth > _DEPTH:
            self.add(value, path, "data", put)
        else:
            self._inside.add(id(value))
            try:
                self._divide_object(value, path, put, depth)
            finally:
                self._inside.discard(id(value))

    def add(self, value: Any, path: str, kind: LeafKind, put: Put | None) -> None:
        content = content_of(value, skipped=self._skipped)
        if self._in_attribute and is_nobodys_data(value):
            content = replace(content, not_compared="")
        plain = kind in ("value", "library")
        masked = content_of(value, masked=True, skipped=self._skipped).exact if plain else ""
        self.leaves.append(Leaf(path, kind, value, content, masked if masked != content.exact else "", put))

    def end(self) -> None:
        if self._rest:
            self.add(self._rest, " and what is behind its first parts", "data", None)

    def _structure(self, path: str, text: str, kind: LeafKind = "structure") -> None:
        content = content_of(text)
        self.leaves.append(Leaf(path, kind, None, Content(content.exact, content.loose, "", text)))

    def _divide_object(self, value: Any, path: str, put: Put | None, depth: int) -> None:
        if isinstance(value, Mapping) and len(value) <= _MOST_KEYS:
            self._mapping(value, path, depth)
        elif isinstance(value, list | tuple | deque) and len(value) <= _MOST_ELEMENTS:
            self._sequence(value, path, put, depth)
        elif isinstance(value, types.FunctionType):
            self._parts_of_code(partial(self._function, value, path, depth))
        elif isinstance(value, types.GeneratorType):
            self._parts_of_code(partial(self._generator, value, path, depth))
        elif (parts := parts_of(value)) is not None:
            for place, part in parts:
                self.divide(part, f"{path}{place}", None, depth + 1)
        elif isinstance(value, type):
            self._class(value, path, depth)
        elif _has_attributes(value):
            self._attributes(value, path, depth)
        elif (numbers := _numbers_apart(value)) is not None:
            self.add(value, path, "data", put)
            self.add(numbers, f"{path} numbers".strip(), "library", None)
        else:
            self.add(value, path, "library" if self._in_attribute and not _is_data(value) else "data", put)

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> None:
        keys = sorted(value, key=repr)
        self._structure(f"{path} keys" if path else "keys", ", ".join(_name_of_key(key) for key in keys))
        for key in keys:
            put = partial(value.__setitem__, key) if hasattr(value, "__setitem__") else None
            self.divide(value[key], f"{path}[{_name_of_key(key)}]", put, depth + 1)

    def _sequence(self, value: Any, path: str, put: Put | None, depth: int) -> None:
        self._structure(f"{path} length" if path else "length", f"{type(value).__name__} of {len(value)}")
        elements = _TupleElements(value, put) if type(value) is tuple and put is not None else value
        for place, element in enumerate(value):
            put_element = partial(elements.__setitem__, place) if hasattr(elements, "__setitem__") else None
            self.divide(element, f"{path}[{place}]", put_element, depth + 1)

    def _function(self, function: types.FunctionType, path: str, depth: int) -> None:
        if not is_users_module(function.__module__ or ""):
            self._structure(path, f"{function.__module__}.{function.__qualname__}")
            return
        self._code(path, function.__code__, f"function {function.__qualname__}")
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        for name, value in closure_of(function):
            put = partial(setattr, cells[name], "cell_contents")
            self.divide(value, f"{path} variable {name}".strip(), put, depth + 1)
        if function.__defaults__:
            self.divide(function.__defaults__, f"{path} defaults".strip(), None, depth + 1)
        if function.__kwdefaults__:
            self._mapping(function.__kwdefaults__, f"{path} defaults".strip(), depth)

    def _generator(self, generator: Any, path: str, depth: int) -> None:
        """Read the code of a generator and its variables; it is not iterated."""
        if generator.gi_frame is None or not is_users_module(generator.gi_frame.f_globals.get("__name__", "")):
            self.add(generator, path, "data", None)
            return
        code = generator.gi_code
        self._code(path, code, f"generator {generator.__qualname__}")
        # Its other variables are there as soon as it has begun.
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            if name in generator.gi_frame.f_locals:
                self.divide(generator.gi_frame.f_locals[name], f"{path} argument {name}".strip(), None, depth + 1)

    def _code(self, path: str, code: types.CodeType, text: str) -> None:
        content = Content(source_digest(code) or "", signature_digest(code), "", text)
        self.leaves.append(Leaf(path, "code", None, content))

    def _parts_of_code(self, divide: Callable[[], None]) -> None:
        outer, self._in_attribute = self._in_attribute, True
        divide()
        self._in_attribute = outer

    def _class(self, kind: type, path: str, depth: int) -> None:
        self._structure(path, kind.__qualname__)
        if is_users_module(kind.__module__):
            for name, value in class_settings(kind):
                self.divide(value, f"{path}.{name}", partial(setattr, kind, name), depth + 1)

    def _attributes(self, value: Any, path: str, depth: int) -> None:
        kind = type(value)
        outer, self._in_attribute = self._in_attribute, True
        self._class(kind, f"{path} class".strip(), depth)
        namespace = isinstance(value, types.SimpleNamespace) or not is_users_module(kind.__module__)
        settings = sorted(vars(value).items()) if namespace and not _is_dataset(value) else settings_in(value)
        for name, setting in settings:
            self.divide(setting, f"{path}.{name}", partial(setattr, value, name), depth + 1)
        self._in_attribute = outer


class _TupleElements:
    """The elements of a tuple: another tuple takes its place where one of them is set."""

    def __init__(self, elements: tuple[Any, ...], put: Put) -> None:
        self._elements = list(elements)
        self._put = put

    def __setitem__(self, place: int, value: Any) -> None:
        self._elements[place] = value
        self._put(tuple(self._elements))


def _has_attributes(value: Any) -> bool:
    """Whether a value is divided by its attributes: of the user's classes, a namespace, or a dataset of a library."""
    import argparse

    kind = type(value)
    if isinstance(value, types.ModuleType) or hasattr(kind, "__next__") or _is_data(value):
        return False
    if isinstance(value, types.SimpleNamespace | argparse.Namespace):
        return True
    if hasattr(kind, "get_config") or _is_model(value):
        return False
    return (is_users_module(kind.__module__) and not isinstance(value, list | tuple | Mapping)) or _is_dataset(value)


def _is_data(value: Any) -> bool:
    """Whether a value is an array, a tensor, a table, or a long container."""
    if isinstance(value, list | tuple | set | frozenset | range | deque | Mapping | bytearray | memoryview):
        return True
    adapter = adapter_of(type(value))
    held = adapter is not None and adapter.is_data
    return held or (hasattr(value, "shape") and hasattr(value, "dtype")) or hasattr(value, "iloc")


def _is_ours(value: Any) -> bool:
    return is_library_of_ours(type(value).__module__) and not isinstance(value, Mapping)


def _is_model(value: Any) -> bool:
    adapter = adapter_of(type(value))
    return adapter is not None and adapter.is_model


def _is_dataset(value: Any) -> bool:
    adapter = adapter_of(type(value))
    return adapter is not None and adapter.is_dataset


def _numbers_apart(value: Any) -> list[Any] | None:
    adapter = adapter_of(type(value))
    return None if adapter is None else adapter.numbers_apart(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a text or the like, or a container of nothing else."""
    counter = _MOST_PLAIN

    def plain(part: Any, depth: int) -> bool:
        nonlocal counter
        counter -= 1
        if counter < 0 or depth > _DEPTH:
            return False
        adapter = adapter_of(type(part))
        if adapter is not None and adapter.is_data:
            return False  # a number that is an array without dimensions, say
        if isinstance(part, (*PLAIN, float, enum.Enum)) or is_path(part):
            return True
        if type(part) in (list, tuple, set, frozenset):
            return all(plain(element, depth + 1) for element in part)
        return isinstance(part, range)

    return plain(value, 0)


def _name_of_key(key: Any) -> str:
    return f"{key!r:.60}" if isinstance(key, str | int | float | bool | tuple) else type(key).__name__


def _literal_of(value: Any) -> str:
    try:
        text = repr(value)
        if len(text) <= _LITERAL_LENGTH and ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    return ""
