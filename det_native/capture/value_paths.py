"""Texts in live values that may be paths: data sets have them that open their files later, and so have settings."""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Any

from det_native.capture.path_texts import names_a_file
from det_native.capture.value_formats import size_of, texts_in
from det_native.heap.edges import ATOMS, kind_of
from det_native.heap.ownership import is_offered

#: Objects that are looked at, of all values together.
_MOST = 200_000
_ENDS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)
_CONTAINERS = frozenset({list, tuple, set, frozenset, dict})
_LONGEST = 400


class ValuePaths:
    """Looks for them.

    Parameters
    ----------
    namespace : mapping of str to object
        The live values.
    reached : collection of str
        Names that the call reaches: these are looked through, with attributes and tables. Of others plain data are.
    """

    def __init__(self, namespace: Mapping[str, Any], reached: Collection[str]) -> None:
        self.namespace = namespace
        self._reached = reached
        self._room = _MOST
        self._seen: dict[int, Any] = {}  # kept, so that no identity is given away twice

    def texts(self, handed: Iterable[tuple[str, ast.expr]]) -> Iterator[tuple[str, str]]:
        """Yield texts that may be paths, each with the name of its value.

        Parameters
        ----------
        handed : iterable of (str, ast.expr)
            Further values to look at: those that the code hands to calls.
        """
        for name in sorted(self.namespace.keys() & self._reached):
            yield from ((text, name) for text in self._in(self.namespace[name], deep=True))
        for name, node in handed:
            if name in self.namespace and name not in self._reached:
                try:
                    value = self._part(node)
                except (LookupError, TypeError):  # what that is shows only when its code runs
                    value = self.namespace[name]
                yield from ((text, name) for text in self._in(value, deep=False))

    def _part(self, node: ast.expr) -> Any:
        """Return what a name, or a part of its value, holds, without running any code of it."""
        match node:
            case ast.Subscript(value=of, slice=ast.Constant(value=key)):
                whole = self._part(of)
                if type(whole) not in (dict, list, tuple):
                    raise TypeError
                return whole[key]
            case ast.Attribute(value=of, attr=name):
                return vars(self._part(of))[name]
        return self.namespace[node.id]  # type: ignore[attr-defined]

    def is_pythons(self, name: str) -> bool:
        """Whether a name holds something of Python's own: a module, or a class, function or object of one."""
        if name not in self.namespace:
            return False
        value = self.namespace[name]
        if issubclass(type(value), types.ModuleType):
            module = value.__name__
        else:
            module = getattr(value if issubclass(type(value), _ENDS) else type(value), "__module__", None) or ""
        package = module.partition(".")[0]
        return package != "__main__" and package in (*sys.stdlib_module_names, "builtins")

    def _in(self, value: Any, *, deep: bool) -> Iterator[str]:
        waiting = [value]
        while waiting and self._room > 0:
            self._room -= 1
            part = waiting.pop()
            kind = type(part)  # what an object says of its own class need not be so
            if issubclass(kind, str):
                if may_be_path(text := str.__str__(part)):
                    yield text
            elif issubclass(kind, PurePath) and is_offered(kind, "__fspath__", "__str__"):
                yield os.path.join(".", os.fsdecode(part))
            elif kind in ATOMS or issubclass(kind, _ENDS) or id(part) in self._seen:
                continue
            elif deep or kind in _CONTAINERS:
                self._seen[id(part)] = part
                with suppress(Exception):  # objects may raise whatever they are asked
                    waiting.extend(_held(part))


def _held(part: Any) -> Iterable[Any]:
    """Return what an object holds, of an array or a table its texts."""
    if issubclass(type(part), set | frozenset):
        return (set if issubclass(type(part), set) else frozenset).__iter__(part)
    return kind_of(part).read_state(part)[0] if size_of(part) is None else [*islice(texts_in(part), _MOST)]


def may_be_path(text: str) -> bool:
    """Whether a text looks like a path: it has a folder, or the ending of a file."""
    return len(text) <= _LONGEST and "\n" not in text and "\0" not in text and ("/" in text or names_a_file(text))
