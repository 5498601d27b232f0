"""Which values a cell has changed, whatever way it took: they look different after it.

Reading the cells finds most of what they change; this finds the rest, where a value is small and plain enough to be
looked at after every cell. Only the standard library is imported, and nothing of the user's is called.
"""

from __future__ import annotations

import array
import marshal
import re
import sys
import time
import types
import zlib
from collections import deque
from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from det_native.capture.events import Stream
from det_native.capture.random_streams import stream_states

_SLOW = 0.02  # seconds of the processor for one value: it is not looked at again
_NODES = 1_000  # parts of one value
_LENGTH = 200_000  # of one container
_BYTES = 1 << 20  # of an array that is read whole; of a larger one as much is read, in so many stretches
_STRETCHES = 16
_DEPTH = 8
_OF_THE_SHELL = re.compile(r"_+|_i+|_i?\d+|_[dios]h|In|Out|_exit_code")
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, range})
#: Where classes come from that keep nothing but what is in their attributes.
_PLAIN_MODULES = frozenset(
    {"__main__", "builtins", "argparse", "types", "typing", "abc", "collections", "enum", "torch.utils.data.dataset"}
)
_SEQUENCES = (list, tuple, deque)
_CONTAINERS = (*_SEQUENCES, dict, set, frozenset)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


class _UnclearError(Exception):
    """A value is too large, or of a kind of which nothing is known."""


class Seen(NamedTuple):
    """What two looks at the same names tell.

    Attributes
    ----------
    changed : frozenset of str
        Names whose values differ; new names are not among them.
    unchanged : frozenset of str
        Names whose values are the same, down to the last of their parts.
    drew : frozenset of str
        Global streams of random numbers whose state differs: something was drawn, or they were seeded.
    """

    changed: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    drew: frozenset[Stream] = frozenset()


NOTHING_SEEN = Seen()


class _Sight(NamedTuple):
    identity: int
    appearance: Hashable
    exact: bool


class Watch:
    """Compares the values of a namespace from one look to the next."""

    def __init__(self) -> None:
        self._seen: dict[str, _Sight] = {}
        self._streams: dict[Stream, int] = {}
        self._slow: dict[str, int] = {}  # name to the id of its value

    def look(self, namespace: Mapping[str, Any], hidden: Collection[str] = ()) -> Seen:
        """Compare the values with those of the last look.

        Parameters
        ----------
        namespace : mapping of name to value
        hidden : collection of str
            Names of it that are not the user's.
        """
        seen: dict[str, _Sight] = {}
        for name, value in list(namespace.items()):
            if name in hidden or _OF_THE_SHELL.fullmatch(name) or self._slow.get(name) == id(value):
                continue
            begin = time.thread_time()
            with suppress(Exception):  # what cannot be looked at is left to the reading of the cells
                seen[name] = _sight_of(value)
            if time.thread_time() - begin > _SLOW:
                self._slow[name] = id(value)
                seen.pop(name, None)
        before, self._seen = self._seen, seen
        both = seen.keys() & before.keys()
        changed = frozenset(name for name in both if seen[name] != before[name])
        unchanged = frozenset(name for name in both - changed if seen[name].exact)
        return Seen(changed, unchanged, self._look_at_streams())

    def _look_at_streams(self) -> frozenset[Stream]:
        before, self._streams = self._streams, stream_states()
        both = self._streams.keys() & before.keys()
        return frozenset(stream for stream in both if self._streams[stream] != before[stream])


def _sight_of(value: Any) -> _Sight:
    """Return what is equal for a value as long as it is not changed, as far as it is known how to look.

    Raises
    ------
    _UnclearError
    """
    if issubclass(type(value), _CODE):
        raise _UnclearError
    look = _Look()
    appearance = look.part(value, 0)
    return _Sight(id(value), appearance, look.exact)


class _Look:
    """One look at one value.

    Attributes
    ----------
    exact : bool
        Whether all of it has been seen.
    """

    def __init__(self) -> None:
        self.exact = True
        self._left = _NODES
        self._inside: set[int] = set()
        self._classes: dict[type, Hashable] = {}

    def part(self, value: Any, depth: int) -> Hashable:
        kind = type(value)
        if kind in _ATOMS:
            if kind in (str, bytes):
                return (kind, len(value), hash(value))  # the text itself would live for longer than the user's name
            return repr(value) if kind in (float, complex) else (kind, value)
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise _UnclearError
        if kind in (list, tuple, dict, set, frozenset):
            if len(value) > _LENGTH:
                raise _UnclearError
            try:
                return zlib.crc32(marshal.dumps(value, 2))  # this version writes equal bytes for equal content
            except ValueError:
                pass  # there is something else in it
        if id(value) in self._inside:
            return "itself"
        self._inside.add(id(value))
        try:
            return self._whole(value, kind, depth + 1)
        finally:
            self._inside.discard(id(value))

    def _whole(self, value: Any, kind: type, depth: int) -> Hashable:
        if issubclass(kind, _CONTAINERS) and not _is_simple(kind):
            self.exact = False  # a library's may keep more than is seen
        for base in _SEQUENCES:
            if issubclass(kind, base):
                parts = (self.part(one, depth) for one in base.__iter__(value))
                return (kind, *parts, self._own(value, kind, depth))
        if issubclass(kind, dict):
            pairs = ((self.part(key, depth), self.part(one, depth)) for key, one in dict.items(value))
            return (kind, *pairs, self._own(value, kind, depth))
        for unordered in (set, frozenset):
            if issubclass(kind, unordered):
                return (kind, frozenset(self.part(one, depth) for one in unordered.__iter__(value)))
        library = kind.__module__.partition(".")[0]
        if kind in (bytearray, array.array):
            return zlib.crc32(value)
        if library == "numpy":
            return _of_array(value, self, depth)
        own = self._own(value, kind, depth)
        if own is not None:
            return (kind, own)
        self.exact = False
        if library == "pandas":
            return self._of_table(value, depth)
        if library == "torch" and kind.__name__ in {"Tensor", "Parameter"}:
            return value.data_ptr(), value._version, tuple(value.shape)
        return self.other(value, depth)

    def other(self, value: Any, depth: int) -> Hashable:
        """Look at something of which it is unknown what it keeps; but it can be replaced, if it is kept itself."""
        self.exact = False
        if depth > 1:
            return id(value)
        raise _UnclearError

    def _own(self, value: Any, kind: type, depth: int) -> Hashable:
        """Look at the attributes of an object of a class of the notebook, or of one like it."""
        if not _is_simple(kind):
            return None
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return None
        return (self._class(kind, depth), *((name, self.part(one, depth)) for name, one in dict.items(attributes)))

    def _class(self, kind: type, depth: int) -> Hashable:
        """Look at what an object has from classes of the notebook, which cells may patch."""
        if kind not in self._classes:
            self._classes[kind] = None  # it may keep objects of its own
            of_cells = [base for base in kind.__mro__ if base.__module__ == "__main__"]
            items = [item for base in of_cells for item in type.__getattribute__(base, "__dict__").items()]
            self._classes[kind] = tuple(
                (name, id(one) if name.startswith("__") or hasattr(type(one), "__get__") else self.part(one, depth))
                for name, one in items
            )
        return self._classes[kind]

    def _of_table(self, value: Any, depth: int) -> Hashable:
        """Look at a table's, column's or index's arrays."""
        manager = getattr(value, "_mgr", None)
        if manager is None:
            return id(value)
        arrays = [getattr(block, "values", None) for block in manager.blocks]
        axes = [(id(axis), len(axis)) for axis in manager.axes]
        return (*axes, *(self._of_column(one, depth) for one in arrays))

    def _of_column(self, value: Any, depth: int) -> Hashable:
        numpy = sys.modules["numpy"]
        held = value if issubclass(type(value), numpy.ndarray) else getattr(value, "_ndarray", None)
        return _of_array(held, self, depth) if held is not None else id(value)


def _of_array(value: Any, look: _Look, depth: int) -> Hashable:
    numpy = sys.modules["numpy"]
    if issubclass(type(value), numpy.generic):
        return repr(value)
    look.exact = look.exact and type(value) is numpy.ndarray  # a masked array has more than its numbers
    if not issubclass(type(value), numpy.ndarray):
        return look.other(value, depth)
    shape = (value.shape, value.dtype.str)
    if value.dtype.hasobject:
        flat = value.ravel()
        few = flat[:: max(1, flat.size // 1_000)]
        look.exact = look.exact and few.size == flat.size
        return (*shape, *(look.part(one, depth) for one in few.tolist()))
    if value.nbytes <= _BYTES:
        return (*shape, zlib.crc32(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)))
    if not value.flags.c_contiguous:
        raise _UnclearError
    look.exact = False
    flat = value.reshape(-1)
    length = _BYTES // _STRETCHES // value.itemsize
    starts = range(0, flat.size - length + 1, (flat.size - length) // (_STRETCHES - 1))
    return (*shape, *(zlib.crc32(flat[start : start + length].view(numpy.uint8)) for start in starts))


def _is_simple(kind: type) -> bool:
    """Whether a class is the notebook's own or a namespace, and derived from no class of a library that hides much."""
    return all(base.__module__ in _PLAIN_MODULES for base in kind.__mro__)
