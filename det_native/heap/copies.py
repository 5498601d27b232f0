"""Copies of objects of the user's, in which what cannot be copied is shared: locks, open files, modules of Python.

``copy.deepcopy`` refuses an object of which one part cannot be copied, however deep that lies. Here an object is
pickled and unpickled in memory, and each part that refuses is the same object in the copy.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import types
from typing import Any

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_CONTAINERS = (list, tuple, dict, set, frozenset, bytearray)


class ObjectCopy(pickle.Pickler):
    """One copy: what is in its objects twice is copied once."""

    def __init__(self) -> None:
        self._into = io.BytesIO()
        super().__init__(self._into, protocol=5)
        #: What has its copy already, by identity, as that of ``copy.deepcopy``.
        self.copies: dict[int, Any] = {}
        self._reduced: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the copy of a value."""
        self.dump(value)
        return _Copies(io.BytesIO(self._into.getvalue()), self.copies).load()

    def definition(self, value: Any) -> Any:
        """Return what the copy has in place of a class or a function: the same one."""
        return value

    def whole(self, value: Any) -> Any:
        """Return the copy of an object that is not taken apart; NotImplemented of any other."""
        own = getattr(type(value), "__deepcopy__", None)
        if own is None or self.definition(type(value)) is not type(value):
            return NotImplemented
        try:
            return own(value, self.copies)
        except Exception:  # noqa: BLE001 (the user's class may raise anything)
            return NotImplemented

    def reduced(self, value: Any) -> Any:
        """Return what an object says it is made of; of one that all the world knows by a name, this."""
        if type(value) is types.MethodType:
            return types.MethodType, (value.__func__, value.__self__)
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce is not None else value.__reduce_ex__(4)

    def persistent_id(self, value: Any) -> Any:
        kind, key = type(value), id(value)
        if kind in _ATOMS:
            return None
        if key not in self.copies and key not in self._reduced and kind not in _CONTAINERS:
            made = self._made(value)
            if made is NotImplemented:
                return None
            self.put(value, made)
        return key if key in self.copies else None

    def put(self, value: Any, made: Any) -> int:
        """Have an object stand for another in the copy."""
        self.copies[id(value)] = made
        self.copies.setdefault(id(self.copies), []).append(value)  # as deepcopy does: nobody else gets its identity
        return id(value)

    def _made(self, value: Any) -> Any:
        if issubclass(type(value), type | types.FunctionType):
            return self.definition(value)
        made = self.whole(value)
        if made is NotImplemented:
            try:
                parts = self.reduced(value)
            except Exception:  # noqa: BLE001 (likewise)
                return value
            if isinstance(parts, str):
                return value
            self._reduced[id(value)] = parts
        return made

    def reducer_override(self, value: Any) -> Any:
        return self._reduced.get(id(value), NotImplemented)


class _Copies(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, memo: dict[int, Any]) -> None:
        super().__init__(stream)
        self._memo = memo

    def persistent_load(self, key: int) -> Any:
        return self._memo[key]
