"""What has changed, as bytes: objects of the loop's beginning are referred to, all others written."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from det_native.carried.numbers import decoded, encoded, is_tensor, storage_of, storages_of, view_of
from det_native.carried.table import Table
from det_native.inspection.attributes import is_own_module

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), list, dict, tuple})


class TooLargeError(Exception):
    """What is written exceeds its limit."""


@dataclass(frozen=True)
class Unit:
    """What is kept, or left out, as one.

    Attributes
    ----------
    name : str
        The user's name, for messages.
    content : callable
        Gives what is written of it.
    """

    name: str
    content: Callable[[], Any]


def packed(
    lost: Mapping[str, str],
    units: Sequence[Unit],
    table: Table,
    known: Mapping[Any, Any],
    replaced: set[int],
    limit: int,
) -> bytes:
    """Return units as bytes.

    Parameters
    ----------
    lost : mapping of str to str
        Names that are left out, each with the reason.
    units : sequence of Unit
    table : Table
    known : mapping
        Objects that others keep, by what stands for them.
    replaced : set of int
        Identities of objects of the beginning that are written nevertheless.
    limit : int
        Bytes at most.

    Raises
    ------
    TooLargeError
        If that is exceeded.
    Exception
        What pickling raises.
    """
    into = _Limited(limit)
    pickler = _Pickler(into, table, known, replaced)
    pickler.dump((dict(lost), [unit.name for unit in units]))
    for unit in units:
        pickler.dump((unit.name, unit.content()))
    pickler.dump(None)
    return into.getvalue()


def head_of(data: bytes) -> tuple[dict[str, str], list[str]]:
    """Return the names that were left out, each with the reason, and the names of the units."""
    head: tuple[dict[str, str], list[str]] = cloudpickle.loads(data)
    return head


def unpacked(data: bytes, table: Table, known: Mapping[Any, Any]) -> Iterator[tuple[str, Any, list[Any]]]:
    """Yield what was packed: the name, the content, and the addresses at which the program has nothing any more.

    Parameters
    ----------
    data : bytes
    table : Table
        Of this process.
    known : mapping
        Objects of this process that others keep, by what stands for them.
    """
    unpickler = _Unpickler(io.BytesIO(data), table, known)
    unpickler.load()
    while (entry := unpickler.load()) is not None:
        missing, unpickler.missing = unpickler.missing, []
        yield (*entry, missing)


class _Limited(io.BytesIO):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > self._limit:
            raise TooLargeError
        return super().write(data)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, into: io.BytesIO, table: Table, known: Mapping[Any, Any], replaced: set[int]) -> None:
        super().__init__(into, protocol=5)
        self._table = table
        self._keys = {id(value): key for key, value in known.items()}
        self._replaced = replaced
        self._storages = storages_of([*(part.value for part in table.parts.values()), *known.values()])

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN and kind is not dict and kind is not list:
            return None
        identity = id(value)
        if identity in self._keys:
            return ("key", self._keys[identity])
        part = self._table.parts.get(identity)
        if part is not None and identity not in self._replaced:
            return ("old", part.address)
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if isinstance(value, type | types.FunctionType) and is_own_module(value.__module__ or ""):
            reference = (value.__module__, value.__qualname__)
            return ("named", reference) if named(reference) is value else None
        return None

    def reducer_override(self, value: Any) -> Any:
        if is_tensor(value):
            whole = self._storages.get(storage_of(value))
            if whole is not None and whole.dtype == value.dtype:
                return view_of, (whole, tuple(value.shape), value.stride(), value.storage_offset())
            return decoded, encoded(value)
        return super().reducer_override(value)


class _Unpickler(cloudpickle.pickle.Unpickler):  # type: ignore[misc]
    def __init__(self, stream: io.BytesIO, table: Table, known: Mapping[Any, Any]) -> None:
        super().__init__(stream)
        self._table = table
        self._objects = known
        self.missing: list[Any] = []

    def persistent_load(self, reference: Any) -> Any:
        kind, what = reference
        if kind == "key":
            if what in self._objects:
                return self._objects[what]
            self.missing.append(what)
            return None
        if kind == "module":
            return sys.modules.get(what) or __import__(what, fromlist=["_"])
        if kind == "named":
            value = named(what)
        else:
            part = self._table.at.get(what)
            value = None if part is None else part.value
        if value is None:
            self.missing.append(what)
        return value


def named(reference: tuple[str, str]) -> Any:
    """Return what a module has under a qualified name; None if there is nothing."""
    value: Any = sys.modules.get(reference[0])
    for name in reference[1].split("."):
        value = getattr(value, name, None)
    return value
