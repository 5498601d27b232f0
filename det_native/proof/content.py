"""Fingerprints of values, equal in every process that has made the same.

Two processes that run the same code do not always get the same bits: the order in which threads add up numbers, and the
instructions of the processor, change the last digits. So there are two fingerprints, of all content and of all but the
floating-point numbers, and of those what `blocks.py` says of each block.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import fractions
import hashlib
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.heap.edges import Kind, SimpleKind, kind_of
from det_native.heap.kinds.instances import ReduceKind
from det_native.heap.kinds.process import FIGURE
from det_native.heap.ownership import is_users_module
from det_native.inspection.attributes import changed_names, settings_in
from det_native.inspection.parts import keeps_attributes_only, parts_of
from det_native.inspection.registry import adapter_of
from det_native.proof.arrays import Arrays
from det_native.proof.configurations import configuration_of
from det_native.proof.fingerprint import Fingerprint
from det_native.proof.own_values import is_own_value, is_path, portable_text, without_folder
from det_native.proof.source import source_digest
from det_native.proof.words import describe

_PARTS = 50_000
_PARTS_OF_SET = 5_000
_FEW = 16
_JOINED = 8 << 10  # bytes of an array, on average
_JOINED_BYTES = 256 << 20
_WHOLE = {int, bool, str, bytes, type(None)}
_DEPTH = 12
_DEPTH_OF_LIBRARY = 4

#: Classes of values without parts; `float` is one too, whose last digits are let pass.
PLAIN = (
    *(int, str, bytes, bool, type(None), complex, slice, type(...), re.Pattern),
    *(datetime.date, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction, uuid.UUID),
)


@dataclass(frozen=True)
class Content:
    """The fingerprints of a value; see ``det_native.schema.proof.InputLeaf`` for what they say.

    Attributes
    ----------
    not_compared : str
        What of it cannot be read, in a few words; empty if all can.
    """

    exact: str
    loose: str
    blocks: str
    text: str
    partly: str = ""
    not_compared: str = ""


def content_of(value: Any, *, masked: bool = False, skipped: Iterable[int] = ()) -> Content:
    """Take the fingerprints of a value. Nothing of it is changed, iterated or drawn from.

    Parameters
    ----------
    value : object
    masked : bool
        Leave out what each process has its own of: moments, temporary folders.
    skipped : iterable of int
        Identities of objects of which only the class counts.
    """
    reader = _Reader(masked=masked, skipped=frozenset(skipped))
    reader.read(value)
    into = reader.into
    exact, loose = into.exact.hexdigest()[:32], into.loose.hexdigest()
    return Content(exact, loose, into.blocks.written(), describe(value), into.partly, ", ".join(into.not_compared))


class _Reader:
    """Reads one value into the two fingerprints and the blocks; what an adapter tells of it goes there, too."""

    def __init__(self, *, masked: bool, skipped: frozenset[int]) -> None:
        self.into = Fingerprint()
        self._arrays = Arrays(self.into, self.go)
        self._masked = masked
        self._skipped = skipped
        self._parts_left = _PARTS
        self._in_library = 0
        self._depth = -1
        self._inside: dict[int, int] = {}

    def read(self, value: Any) -> None:
        self._parts_left -= 1
        if self._parts_left < 0 or self._depth >= _DEPTH:
            self.into.partly = f"its first {_PARTS:,} parts" if self._parts_left < 0 else f"its first {_DEPTH} levels"
            return
        self._depth += 1
        try:
            self._read(value)
        finally:
            self._depth -= 1

    def say(self, *facts: Any) -> None:
        self.into.both(*map(str, facts))

    def go(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self.read(part)

    def numbers(self, array: Any, bytes_of_each: int = 0) -> None:
        self._arrays.read(array, bytes_of_each)

    def named(self, parts: Iterable[tuple[str, Any]]) -> None:
        for name, part in parts:
            self.into.both("attribute", name)
            self._setting(part)

    def partly(self, what: str) -> None:
        self.into.partly = what

    def cannot_see(self, what: str = "") -> None:
        self.into.not_compared.append(what)

    def _read(self, value: Any) -> None:
        if isinstance(value, enum.Enum):
            self.into.both("enum", type(value).__qualname__, value.name)
            self.read(value.value)
        elif self._masked and is_own_value(value):
            self.into.both("of this process", type(value).__name__)
        elif type(value) is float:
            self.into.floats("float", [value])
        elif isinstance(value, PLAIN):
            self.into.both(type(value).__name__, self._text(value) if isinstance(value, str) else repr(value))
        elif isinstance(value, bytearray | memoryview):
            self.into.both(type(value).__name__, hashlib.sha256(value).hexdigest())
        elif is_path(value):
            self.into.both("path", self._text(str(value)))
        elif id(value) in self._skipped:
            self.into.kind(value)
        elif id(value) in self._inside:
            self.into.both("itself", str(self._inside[id(value)]))
        else:
            self._inside[id(value)] = self._depth
            try:
                self._read_object(value)
            finally:
                del self._inside[id(value)]

    def _text(self, text: str) -> str:
        if self._in_library and not text.isidentifier():
            return ""  # names and places are the library's own affair
        return portable_text(text, masked=self._masked)

    def _read_object(self, value: Any) -> None:
        adapter = adapter_of(type(value))
        if adapter is not None and adapter.content(value, self):
            return
        kind = kind_of(value)
        if kind.quiet or kind is FIGURE:  # a progress bar, a figure: each process has its own
            self.into.both("of this process", type(value).__name__)
            return
        read = self._container_reader(value) or self._object_reader(value)
        read(value)

    def _container_reader(self, value: Any) -> Callable[[Any], None] | None:
        if isinstance(value, Mapping):
            return self._mapping
        if isinstance(value, list | tuple | deque | range):
            return self._sequence
        return self._set if isinstance(value, set | frozenset) else None

    def _object_reader(self, value: Any) -> Callable[[Any], None]:
        if hasattr(type(value), "get_config"):
            return self._configured
        if isinstance(value, types.FunctionType):
            return self._function
        parts = parts_of(value)
        if parts is not None:
            return lambda _: self.go(part for _, part in parts)
        if isinstance(value, types.SimpleNamespace | argparse.Namespace):
            return lambda namespace: self._mapping(vars(namespace))
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return lambda named: self.into.both("name", getattr(named, "__qualname__", named.__name__))
        return self._object

    def _mapping(self, value: Any) -> None:
        self.into.both("mapping", type(value).__name__, str(len(value)))
        for key, element in sorted(value.items(), key=lambda item: repr(item[0])):
            self.go((key, element))

    def _set(self, value: Any) -> None:
        # Which elements come first differs from process to process: of a large set only their number counts.
        if set(map(type, value)) <= _WHOLE:
            digests = [hashlib.sha256(repr(sorted(map(repr, value))).encode("utf-8", "surrogatepass")).hexdigest()]
        elif len(value) <= _PARTS_OF_SET:
            digests = sorted(content_of(element, masked=self._masked).exact for element in value)
        else:
            digests = []
            self.into.partly = "the number and the kind of the elements"
        self.into.both("set", str(len(value)), *digests)

    def _object(self, value: Any) -> None:
        """Read any other object: one of the user's by its settings, one of a library by the data that it holds."""
        self.into.kind(value)
        if is_users_module(type(value).__module__):
            self.named(settings_in(value))
            return
        if hasattr(type(value), "__next__") and _is_read_in_place(kind := kind_of(value)):
            children, facts = kind.read_state(value)
            self.say(facts)
            self.go(children)
            return
        outer, self._in_library = self._in_library, self._in_library + 1
        try:
            if self._in_library > _DEPTH_OF_LIBRARY:
                return
            public = _public_attributes(value)
            if _has_own_pickle(value) or not public:
                self._pickled(value)
            else:
                self.named(public)
        finally:
            self._in_library = outer

    def _setting(self, value: Any) -> None:
        """Read an attribute; of a lock or a log, and of what is a library's own, nobody is told that it is not read."""
        before = list(self.into.not_compared)
        self.read(value)
        if self._in_library or is_nobodys_data(value):
            self.into.not_compared = before

    def _pickled(self, value: Any) -> None:
        """Read an object by what it would be pickled by."""
        try:
            # An iterator would be read to its end, or copied: nothing of it is compared.
            reduced = None if hasattr(type(value), "__next__") else value.__reduce_ex__(2)
        except Exception:  # noqa: BLE001 (a library's, or a user's own)
            reduced = None
        if reduced is None:
            self.cannot_see(type(value).__name__)
        elif not isinstance(reduced, str):
            arguments, state = reduced[1], reduced[2] if len(reduced) > 2 else None
            told = state or not all(isinstance(argument, type) or argument is None for argument in arguments or ())
            if not told and not keeps_attributes_only(type(value)):
                self.cannot_see(type(value).__name__)  # it tells nothing but its class
            self.go((*(arguments or ()), state))

    def _configured(self, value: Any) -> None:
        """Read an object of Keras, or of a library like it, that tells its configuration."""
        self.into.kind(value)
        self.go(configuration_of(value))

    def _sequence(self, value: Any) -> None:
        self.into.both("sequence", type(value).__name__, str(len(value)))
        own = self._masked and len(value) <= _FEW and any(map(is_own_value, value))
        if value and not own and all(type(element) is float for element in value):
            self.into.floats("floats", list(value))
            return
        if isinstance(value, range):
            self.into.both(repr(value))
            return
        if len(value) > _FEW and is_plain_sequence(value):
            self.into.both("plain", hashlib.blake2b(_plain_text(value), digest_size=16).hexdigest())
            return
        if len(value) > _FEW and (array := _joined(value)) is not None:
            self.into.both("arrays", hashlib.sha256(repr([part.shape for part in value]).encode()).hexdigest())
            self.numbers(array)
            return
        self.go(value)

    def _function(self, function: types.FunctionType) -> None:
        if not is_users_module(function.__module__ or ""):
            self.into.both("function", str(function.__module__), function.__qualname__)
            return
        self.into.both("function", function.__qualname__, source_digest(function.__code__) or "")
        for _, value in closure_of(function):
            self._setting(value)
        self.go((function.__defaults__, function.__kwdefaults__))


def _is_read_in_place(kind: Kind) -> bool:
    """Whether a kind reads an iterator of Python's own, or a file in memory, and leaves it at its place."""
    return isinstance(kind, ReduceKind | SimpleKind) and kind.compared and not kind.stays


def is_nobodys_data(value: Any) -> bool:
    """Whether a value is known to be no data, but a lock, a log or the like."""
    adapter = adapter_of(type(value))
    return adapter is not None and bool(adapter.never_sent)


def _public_attributes(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of a library's object; methods change those of an array, but not by mere use."""
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return []
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return sorted((name, part) for name, part in held.items() if name[:1] != "_")
    return list(settings_in(value))


def _has_own_pickle(value: Any) -> bool:
    names = ("__reduce__", "__reduce_ex__", "__getstate__")
    return any(name in vars(base) for base in type(value).__mro__[:-1] for name in names)


def closure_of(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return the variables that a function closes over and does not change itself, by name."""
    changed = changed_names(function.__code__)
    variables = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            if name not in changed:
                variables.append((name, cell.cell_contents))
        except ValueError:  # nothing is in it yet
            continue
    return variables


def is_plain_sequence(value: Any) -> bool:
    """Whether a list holds nothing but whole numbers and texts, or lists of such."""
    kinds = set(map(type, value))
    return kinds <= _WHOLE or (kinds <= {list, tuple} and all(set(map(type, row)) <= _WHOLE for row in value))


def _joined(value: Any) -> Any:
    """Return many small arrays of one type as one; None if that is not what a sequence holds."""
    numpy = sys.modules.get("numpy")
    if numpy is None or set(map(type, value)) != {numpy.ndarray} or len({part.dtype for part in value}) > 1:
        return None
    dtype = value[0].dtype
    if (
        dtype.hasobject
        or dtype.names is not None
        or sum(part.nbytes for part in value) > min(_JOINED * len(value), _JOINED_BYTES)
    ):
        return None
    return numpy.concatenate([part.reshape(-1) for part in value])


def _plain_text(value: Any) -> bytes:
    def moved(row: Any) -> list[Any]:
        return [without_folder(part) if type(part) is str else part for part in row]

    nested = isinstance(value[0], list | tuple)
    if not nested:
        return repr(moved(value)).encode("utf-8", "surrogatepass")
    rows = [moved(row) if any(type(part) is str for part in row) else list(row) for row in value]
    return repr((rows, sorted({type(row).__name__ for row in value}))).encode("utf-8", "surrogatepass")
