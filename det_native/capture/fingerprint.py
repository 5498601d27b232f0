"""Fingerprints of values: something small that differs as soon as the value differs.

Only the standard library is imported, and nothing of the user's is called, but a metaclass's own ``__getattribute__``.
"""

from __future__ import annotations

import array
import datetime
import decimal
import enum
import fractions
import functools
import io
import marshal
import mmap
import pathlib
import pickle
import sys
import types
import zlib
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from det_native.capture.random_streams import state_of_generator

_PARTS = 2_000  # of one value that are looked at one by one; a long container, or an array, counts as more
_LENGTH_OF_PART = 100
_BYTES_OF_PART = 1 << 13
_BYTES = 1 << 20  # of an array that is read whole; of a larger one as much is read, in so many stretches
_STRETCHES = 16
_DEPTH = 8
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, range})
_NUMBERS = frozenset({type(None), bool, int, float, complex})
_PATH = type(pathlib.Path())
#: Others of which the text says all. Their subclasses may keep more.
_COMPARED_BY_TEXT = frozenset({datetime.date, datetime.timedelta, decimal.Decimal, fractions.Fraction, _PATH})
#: Where classes come from that keep nothing but what is in their attributes.
_PLAIN_MODULES = frozenset(
    {"__main__", "argparse", "types", "typing", "abc", "enum", "collections", "collections.abc"}
    | {"torch.utils.data.dataset"}
)
_SEQUENCES = (list, tuple, deque)
_CONTAINERS = (*_SEQUENCES, dict, set, frozenset)
_BUILT_IN = frozenset({list, tuple, dict, set, frozenset})
_GENERATORS = frozenset({"Generator", "RandomState", "Random"})
_CODE = (types.BuiltinFunctionType, types.MethodType, types.ModuleType)
_MADE_BY_CODE = 1 << 9  # Py_TPFLAGS_HEAPTYPE, of a class that is not one of Python's own
#: Modules that make methods which keep nothing that changes.
_MAKERS = frozenset({"abc", "collections", "dataclasses", "enum", "functools", "typing"})
#: What stands in a class and keeps nothing of its instances.
_WITHOUT_STATE = frozenset(
    {types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType}
)


class UnclearError(Exception):
    """A value is too large, or of a kind of which nothing is known."""


class Observation(NamedTuple):
    """One observation of one value.

    Attributes
    ----------
    identity : int
        Of the value itself.
    fingerprint : Hashable
        Equal for equal content; None if it cannot be computed.
    inner : int
        Stands for which objects are kept in the value: an equal one in the place of another is no change that can be
        seen, but others may keep it too, and change it later.
    exact : bool
        Whether all of it has been seen.
    """

    identity: int
    fingerprint: Hashable
    inner: int
    exact: bool


def observe(value: Any) -> Observation:
    """Take the fingerprint of a value.

    Raises
    ------
    UnclearError
    """
    kind = type(value)
    if issubclass(kind, _CODE):
        raise UnclearError
    observer = _Observer()
    try:
        return Observation(id(value), observer.part(value, 0), hash(tuple(observer.inner)), observer.exact)
    except UnclearError:
        if kind not in _BUILT_IN:
            raise
        return Observation(id(value), _checksum(value), 0, exact=False)


class _Observer:
    """One observation of one value.

    Attributes
    ----------
    exact : bool
        Whether all of it has been seen.
    inner : list of int
        Identities of what is kept in it.
    """

    def __init__(self) -> None:
        self.exact = True
        self.inner: list[int] = []
        self._left = _PARTS
        self._inside: dict[int, int] = {}  # identity of what is being looked at, to its depth
        self._classes: dict[type, Hashable] = {}

    def spend(self, parts: int) -> None:
        """Count what is looked at, so that no observation takes long."""
        self._left -= parts
        if self._left < 0:
            raise UnclearError

    def part(self, value: Any, depth: int) -> Hashable:
        kind = type(value)
        if kind in _ATOMS:
            if kind in (str, bytes):
                return (kind, len(value), hash(value))  # the text itself would live for longer than the user's name
            return repr(value) if kind in (float, complex) else (kind, value)
        self.spend(1)
        if depth > _DEPTH:
            raise UnclearError
        if kind in _COMPARED_BY_TEXT:
            return (kind, str(value))
        if issubclass(kind, enum.Enum):
            return id(value)
        if id(value) in self._inside:
            return ("itself", self._inside[id(value)])
        if depth and kind is not tuple:
            self.inner.append(id(value))
        self._inside[id(value)] = depth
        try:
            return self._whole(value, kind, depth + 1)
        finally:
            del self._inside[id(value)]

    def _whole(self, value: Any, kind: type, depth: int) -> Hashable:
        if issubclass(kind, _CONTAINERS):
            return self._container(value, kind, depth)
        if kind is bytearray or kind is array.array:
            self.spend(memoryview(value).nbytes // _BYTES_OF_PART)
            return (kind, zlib.crc32(value))
        if kind is types.FunctionType and value.__module__ == "__main__":
            return self._function(value, depth)
        if issubclass(kind, type):
            return self._kind(value, depth)
        library = kind.__module__.partition(".")[0]
        if kind.__name__ in _GENERATORS and library in {"numpy", "torch", "random"}:
            self.exact = False
            return (id(value), state_of_generator(value))
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
        if "traitlets" in sys.modules and issubclass(kind, sys.modules["traitlets"].HasTraits):
            return self._of_widget(value, depth)
        return self.other(value, depth)

    def other(self, value: Any, depth: int) -> Hashable:
        """Look at something of which it is unknown what it keeps; but it can be replaced, if it is kept itself."""
        self.exact = False
        if depth > 1:
            return id(value)
        raise UnclearError

    def _container(self, value: Any, kind: Any, depth: int) -> Hashable:
        base, own = kind, None
        if kind not in _BUILT_IN:
            base = next(base for base in _CONTAINERS if issubclass(kind, base))
            own = self._own(value, kind, depth)
            if own is None:
                self.exact = False  # a library's may keep more than is seen
        self.spend(base.__len__(value) // _LENGTH_OF_PART)
        if base is dict:
            keys = [*(OrderedDict if issubclass(kind, OrderedDict) else dict).__iter__(value)]
            return (kind, own, self._all(keys, depth), self._all([*dict.values(value)], depth))
        parts = [*base.__iter__(value)]
        return (kind, own, self._all(parts, depth))

    def _all(self, parts: list[Any], depth: int) -> Hashable:
        if not parts:
            return None
        kinds = set(map(type, parts))
        if kinds <= _NUMBERS:
            return zlib.crc32(marshal.dumps(parts, 2))  # this version writes equal bytes for equal content
        if kinds == {str}:
            return hash(tuple(parts))
        self.spend(len(parts) // (_LENGTH_OF_PART // 10))
        return tuple([self.part(one, depth) for one in parts])

    def _own(self, value: Any, kind: type, depth: int) -> Hashable:
        """Look at the attributes of an object of a class of the notebook, or of one like it."""
        if not _is_simple(kind):
            return None
        attributes = [*_slots(value, kind)]
        with suppress(AttributeError):
            attributes.extend(dict.items(object.__getattribute__(value, "__dict__")))
        if not attributes and kind.__module__ != "__main__" and not issubclass(kind, _CONTAINERS):
            return None  # what it has must be elsewhere
        return (self._class(kind, depth), *((name, self.part(one, depth)) for name, one in attributes))

    def _class(self, kind: type, depth: int) -> Hashable:
        """Look at what an object has from classes of the notebook, which cells may patch."""
        if kind not in self._classes:
            self._classes[kind] = None  # it may keep objects of its own
            of_cells = [base for base in kind.__mro__ if base.__module__ == "__main__"]
            items = [item for base in of_cells for item in _dict_of(base).items() if _is_compared(*item)]
            self._classes[kind] = tuple((name, self._member(one, depth)) for name, one in items)
        return self._classes[kind]

    def _member(self, one: Any, depth: int) -> Hashable:
        kind = type(one)
        if kind is staticmethod or kind is classmethod:
            return self.part(one.__func__, depth)
        if kind is property:
            return tuple([self.part(function, depth) for function in (one.fget, one.fset, one.fdel)])
        if kind is functools.cached_property:
            return self.part(one.func, depth)
        if kind is types.FunctionType:
            return id(one) if _is_generated(one) else self._function(one, depth)
        return self.part(one, depth)

    def _function(self, value: Any, depth: int) -> Hashable:
        """Look at what a function of the notebook has besides its code: defaults, attributes, what it was made in."""
        kept = [one for one in (value.__defaults__, value.__kwdefaults__, value.__dict__) if one]
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # nothing is in it yet
                kept.append(cell.cell_contents)
        return (value.__name__, id(value.__code__), *(self.part(one, depth) for one in kept))

    def _kind(self, value: type, depth: int) -> Hashable:
        """Look at a class of the notebook: settings are often the attributes of one."""
        if _dict_of(value).get("__module__") != "__main__":
            return self.other(value, depth) if value.__flags__ & _MADE_BY_CODE else id(value)
        if type(value) is not type or not _is_simple(value):
            self.exact = False
        self.inner.extend(map(id, type.__subclasses__(value)))
        return self._class(value, depth)

    def _of_widget(self, value: Any, depth: int) -> Hashable:
        """Look at what the user has set a slider to, or the like; the rest comes and goes when it is shown."""
        traits = object.__getattribute__(value, "__dict__").get("_trait_values", {})
        return (type(value), id(value), self.part(traits.get("value"), depth))

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


def _of_array(value: Any, observer: _Observer, depth: int) -> Hashable:
    numpy = sys.modules["numpy"]
    if issubclass(type(value), numpy.generic):
        return (value.dtype.str, repr(value))
    observer.exact = observer.exact and type(value) is numpy.ndarray  # a masked array has more than its numbers
    if not issubclass(type(value), numpy.ndarray) or _is_of_file(value, numpy.ndarray):
        return observer.other(value, depth)
    shape = (value.shape, value.dtype.str, value.dtype.names, value.flags.writeable)
    if value.dtype.hasobject:
        flat = value.ravel()
        few = flat[:: max(1, flat.size // 1_000)]
        observer.exact = observer.exact and few.size == flat.size
        return (*shape, *(observer.part(one, depth) for one in few.tolist()))
    observer.spend(min(value.nbytes, _BYTES) // _BYTES_OF_PART)
    if value.nbytes <= _BYTES:
        return (*shape, zlib.crc32(numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)))
    if not value.flags.c_contiguous:
        raise UnclearError
    observer.exact = False
    flat = value.reshape(-1)
    length = _BYTES // _STRETCHES // value.itemsize
    starts = range(0, flat.size - length + 1, (flat.size - length) // (_STRETCHES - 1))
    return (*shape, *(zlib.crc32(flat[start : start + length].view(numpy.uint8)) for start in starts))


def _is_of_file(array: Any, kind: type) -> bool:
    """Whether the numbers are those of a mapped file: to read them after it was cut short is the end of the kernel."""
    while issubclass(type(array), kind):
        array = array.base
    return type(array.obj if type(array) is memoryview else array) is mmap.mmap


def _is_simple(kind: type) -> bool:
    """Whether a class is the notebook's own or a namespace, and derived from no class that hides what it keeps."""
    return all(_is_among(base, (object, *_CONTAINERS)) or base.__module__ in _PLAIN_MODULES for base in kind.__mro__)


def _is_among(kind: type, kinds: Collection[type]) -> bool:
    """Like ``in``, which would ask the class, and that may be the user's, what it is equal to."""
    return any(kind is one for one in kinds)


def _dict_of(kind: type) -> types.MappingProxyType[str, Any]:
    found: types.MappingProxyType[str, Any] = type.__getattribute__(kind, "__dict__")
    return found


def _is_compared(name: str, one: Any) -> bool:
    """Whether something in a class matters: what Python itself puts there, when an object is copied, say, does not."""
    ours = name == "_abc_impl" or (name.startswith("__") and type(one) is not types.FunctionType)
    return not ours and type(one) not in _WITHOUT_STATE


def _is_generated(function: types.FunctionType) -> bool:
    """Whether a library has made a method: ``__init__`` and the like of a dataclass."""
    return function.__code__.co_filename == "<string>" or function.__globals__.get("__name__") in _MAKERS


def _slots(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what is kept elsewhere than in ``__dict__``."""
    for base in kind.__mro__:
        for name, slot in _dict_of(base).items():
            if type(slot) is types.MemberDescriptorType and name != "__dict__":
                with suppress(AttributeError):  # nothing is in it yet
                    yield name, slot.__get__(value)


class _Plain(pickle.Pickler):
    """Writes lists, dictionaries and the like of numbers and texts, and nothing else."""

    def reducer_override(self, value: Any) -> Any:
        raise UnclearError


class _Sum(io.RawIOBase):
    """Keeps the checksum of what is written; too much is an error."""

    def __init__(self) -> None:
        self.value, self._written = 0, 0

    def write(self, chunk: Any) -> int:
        self._written += len(chunk)
        if self._written > _BYTES:
            raise UnclearError
        self.value = zlib.crc32(chunk, self.value)
        return len(chunk)


def _checksum(value: Any) -> Hashable:
    """Return the checksum of plain data of many parts."""
    written = _Sum()
    _Plain(written, 5).dump(value)
    return written.value
