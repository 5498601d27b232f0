"""Texts in live values that may be paths: data sets have them that open their files later, and so have settings."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from det_native.capture.path_flow import Way
from det_native.capture.path_texts import names_a_file
from det_native.inspection.registry import adapter_of

#: Objects that are looked at, of all values together.
_MOST = 200_000
_ENDS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)
_NUMBERS = (type(None), bool, int, float, complex, bytes, bytearray)
_LONGEST = 400


class ValuePaths:
    """Looks for them.

    Parameters
    ----------
    namespace : mapping of str to object
        The live values.
    reached : collection of str
        Names that the call reaches: these are looked through, with attributes and tables. Of others plain data are.

    Attributes
    ----------
    namespace : mapping of str to object
    """

    def __init__(self, namespace: Mapping[str, Any], reached: Collection[str]) -> None:
        self.namespace = namespace
        self._reached = reached
        self._room = _MOST
        self._seen: dict[int, Any] = {}  # kept, so that no identity is given away twice

    def texts(self, handed: Collection[Way]) -> Iterator[tuple[str, str]]:
        """Yield texts that may be paths, each with the name of its value.

        Parameters
        ----------
        handed : collection of Way
            Further values to look at: those that the code hands to calls.
        """
        ways = {*map(Way, self._reached), *handed}
        for way in sorted(way for way in ways if way.name in self.namespace):
            for text in self._in(self._value(way), deep=way.name in self._reached):
                yield text, way.name

    def _value(self, way: Way) -> Any:
        """Return a part of a value; all of it where that cannot be told without running its code."""
        whole = value = self.namespace[way.name]
        for kind, step in way.steps:
            try:
                parts = value if kind == "key" else vars(value)
                value = parts[step] if type(parts) in (dict, list, tuple) or kind == "attribute" else whole
            except (KeyError, IndexError, TypeError):
                return whole
        return value

    def is_pythons(self, name: str) -> bool:
        """Whether a name holds something of Python's own: a module, or a class, function or object of one."""
        if name not in self.namespace:
            return False
        value = self.namespace[name]
        if isinstance(value, types.ModuleType):
            module = value.__name__
        else:
            module = getattr(value if isinstance(value, _ENDS) else type(value), "__module__", None) or ""
        package = module.partition(".")[0]
        return package != "__main__" and package in (*sys.stdlib_module_names, "builtins")

    def _in(self, value: Any, *, deep: bool) -> Iterator[str]:
        waiting = [value]
        while waiting and self._room > 0:
            self._room -= 1
            one = waiting.pop()
            if isinstance(one, str):
                if _may_be_path(one):
                    yield one
            elif isinstance(one, os.PathLike):
                yield os.path.join(".", os.fsdecode(one))
            elif isinstance(one, (*_NUMBERS, *_ENDS)) or id(one) in self._seen:
                continue
            elif isinstance(one, dict):
                self._seen[id(one)] = one
                # Layers of Keras keep dictionaries in proxies, which only say that they are of that class.
                waiting.extend(dict.values(one) if issubclass(type(one), dict) else one.values())
            elif isinstance(one, list | tuple | set | frozenset):
                self._seen[id(one)] = one
                waiting.extend(one)
            elif deep:
                self._seen[id(one)] = one
                adapter = adapter_of(type(one))
                if adapter is not None and adapter.is_data:
                    texts = list(adapter.texts(one))
                    self._room -= len(texts)
                    yield from filter(_may_be_path, texts)
                else:
                    waiting.extend(getattr(one, "__dict__", {}).values())


def _may_be_path(text: str) -> bool:
    return len(text) <= _LONGEST and "\n" not in text and "\0" not in text and ("/" in text or names_a_file(text))
