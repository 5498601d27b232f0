"""Fingerprints of what a training call is given, equal in every process that has made the same.

Two processes that run the same code do not always get the same bits: the order in which threads add up numbers, and the
instructions of the processor, change the last digits. So there are two fingerprints, of all content and of all but the
floating-point numbers, and of those what `blocks.py` says of each block.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import hashlib
import os
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.arrays import BUS_BYTES, Arrays
from det_native.proof.attributes import changed_names, is_own_module, settings_in
from det_native.proof.fingerprint import Fingerprint
from det_native.proof.graphs import Graphs
from det_native.proof.words import describe

_PARTS = 50_000
_PARTS_OF_SET = 5_000
_FEW = 16
_DIGIT = re.compile(r"\d")
_DIGITS = 5  # in a text: a moment, a process, a part of a random name
_YEAR_2001, _YEAR_2096 = 1e9, 4e9  # in seconds since 1970
_JOINED = 8 << 10  # bytes of an array, on average
_WHOLE = {int, bool, str, bytes, type(None)}
_DEPTH = 12

_PLAIN = (int, str, bytes, bool, type(None), complex, datetime.date, datetime.timedelta, decimal.Decimal, uuid.UUID)


@dataclass(frozen=True)
class Content:
    """The fingerprints of a value; see ``det_native.schema.proof.InputFact`` for what they say."""

    exact: str
    code: str
    loose: str
    blocks: str
    text: str
    partly: str = ""


def content_of(value: Any, *, of_process: bool = False) -> Content:
    """Take the fingerprints of a value. Nothing of it is changed, iterated or drawn from.

    Of what is of no known kind (an iterator, a handle, a library's object) only the class counts.
    """
    reader = _Reader(settings=of_process)
    reader.read(value, 0)
    found = reader.into
    exact, loose = found.exact.hexdigest()[:32], found.loose.hexdigest()
    code = f"{sys.version_info[0]}.{sys.version_info[1]}:{found.code.hexdigest()}" if found.has_code else ""
    return Content(exact, code, loose, found.blocks.written(), describe(value), found.partly)


class _Reader:
    """Reads one value into the two fingerprints and the blocks."""

    def __init__(self, *, settings: bool = False) -> None:
        self.into = Fingerprint()
        self._arrays = Arrays(self.into, self._sequence)
        self._graphs = Graphs(self.into, self._arrays, self.read)
        self._settings = settings
        self._left = _PARTS
        self._inside: dict[int, int] = {}

    def read(self, value: Any, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            self.into.partly = f"its first {_PARTS:,} parts" if self._left < 0 else f"its first {_DEPTH} levels"
            return
        if isinstance(value, enum.Enum):
            self.into.both("enum", type(value).__qualname__, value.name)
        elif self._settings and _is_of_process(value):
            self.into.both("of this process", type(value).__name__)
        elif type(value) is float:
            self.into.floats("float", [value])
        elif isinstance(value, _PLAIN):
            self.into.both(type(value).__name__, _without_place(value) if isinstance(value, str) else repr(value))
        elif id(value) in self._inside:
            self.into.both("itself", str(self._inside[id(value)]))
        else:
            self._inside[id(value)] = depth
            try:
                self._read_object(value, depth)
            finally:
                del self._inside[id(value)]

    def _read_object(self, value: Any, depth: int) -> None:
        read = self._arrays.reader(value) or self._container_reader(value) or self._object_reader(value)
        if read is not None:
            read(value, depth)
        else:
            self.into.kind(value)

    def _container_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        if isinstance(value, Mapping):
            return self._mapping
        if isinstance(value, list | tuple | deque | range):
            return self._sequence
        return self._set if isinstance(value, set | frozenset) else None

    def _object_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        if self._graphs.reads(value):
            return self._graphs.dataset
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.nn.Module):
            return self._module
        if torch is not None and isinstance(value, torch.utils.data.DataLoader):
            return self._loader
        if isinstance(value, types.FunctionType):
            return self._function
        if isinstance(value, types.MethodType):
            return lambda method, depth: self.read(method.__func__, depth + 1)
        if isinstance(value, types.SimpleNamespace | argparse.Namespace):
            return lambda namespace, depth: self._mapping(vars(namespace), depth)
        return self._attributes if _holds_attributes(value) else None

    def _mapping(self, value: Any, depth: int) -> None:
        self.into.both("mapping", type(value).__name__, str(len(value)))
        for key, one in sorted(value.items(), key=lambda item: repr(item[0])):
            self.read(key, depth + 1)
            self.read(one, depth + 1)

    def _set(self, value: Any, depth: int) -> None:
        # Which elements come first differs from process to process: of a large set only their number counts.
        if set(map(type, value)) <= _WHOLE:
            known = [hashlib.sha256(repr(sorted(map(repr, value))).encode("utf-8", "surrogatepass")).hexdigest()]
        elif len(value) <= _PARTS_OF_SET:
            known = sorted(content_of(one).exact for one in value)
        else:
            known = []
            self.into.partly = "the number and the kind of the elements"
        self.into.both("set", str(len(value)), *known)

    def _attributes(self, value: Any, depth: int) -> None:
        self.into.kind(value)
        outer, self._settings = self._settings, True
        for name, one in settings_in(value):
            if _is_content(one):
                self.into.both("attribute", name)
                self.read(one, depth + 1)
        self._settings = outer

    def _sequence(self, value: Any, depth: int) -> None:
        self.into.both("sequence", type(value).__name__, str(len(value)))
        if value and all(type(one) is float for one in value):
            self.into.floats("floats", list(value))
            return
        if isinstance(value, range):
            self.into.both(repr(value))
            return
        if len(value) > _FEW and _is_plain(value):
            self.into.both("plain", hashlib.blake2b(_plain_text(value), digest_size=16).hexdigest())
            return
        if len(value) > _FEW and (array := _joined(value)) is not None:
            self.into.both("arrays", hashlib.sha256(repr([one.shape for one in value]).encode()).hexdigest())
            self._arrays.array(array, depth)
            return
        for one in value:
            self.read(one, depth + 1)

    def _module(self, module: Any, depth: int) -> None:
        for name, one in module.named_modules():
            self.into.both("module", name, type(one).__qualname__, one.extra_repr())
        for name, tensor in module.state_dict().items():
            self.into.both("state", name)
            self.read(tensor, depth + 1)

    def _loader(self, loader: Any, depth: int) -> None:
        self.into.kind(loader)
        self.into.both(str(loader.batch_size), str(loader.drop_last), type(loader.sampler).__name__)
        self.read(loader.dataset, depth + 1)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        self.into.both("function", function.__qualname__)
        self.into.has_code = True
        self._code(function.__code__)
        changed = changed_names(function.__code__)
        outer, self._settings = self._settings, True
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                if name not in changed:
                    self.read(cell.cell_contents, depth + 1)
            except ValueError:  # nothing is in it yet
                continue
        self._settings = outer
        self.read(function.__defaults__, depth + 1)
        self.read(function.__kwdefaults__, depth + 1)

    def _code(self, code: types.CodeType) -> None:
        self.into.of_code("code", code.co_code.hex(), *code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif not isinstance(constant, str):
                self.into.of_code(
                    repr(constant) if not isinstance(constant, frozenset) else repr(sorted(map(repr, constant)))
                )
            elif constant != code.co_consts[0] and not _is_of_process(constant):  # the first may be a description
                self.into.of_code(constant)


def _joined(value: Any) -> Any:
    """Return many small arrays of one type as one; None if that is not what a sequence holds."""
    numpy = sys.modules.get("numpy")
    if numpy is None or set(map(type, value)) != {numpy.ndarray} or len({one.dtype for one in value}) > 1:
        return None
    dtype = value[0].dtype
    if (
        dtype.hasobject
        or dtype.names is not None
        or sum(one.nbytes for one in value) > min(_JOINED * len(value), BUS_BYTES)
    ):
        return None
    return numpy.concatenate([one.reshape(-1) for one in value])


def _is_plain(value: Any) -> bool:
    """Whether a list holds nothing but whole numbers and texts, or lists of such."""
    kinds = set(map(type, value))
    return kinds <= _WHOLE or (kinds <= {list, tuple} and all(set(map(type, one)) <= _WHOLE for one in value))


def _plain_text(value: Any) -> bytes:
    def moved(row: Any) -> list[Any]:
        return [_without_place(one) if type(one) is str else one for one in row]

    nested = isinstance(value[0], list | tuple)
    if not nested:
        return repr(moved(value)).encode("utf-8", "surrogatepass")
    rows = [moved(one) if any(type(each) is str for each in one) else list(one) for one in value]
    return repr((rows, sorted({type(one).__name__ for one in value}))).encode("utf-8", "surrogatepass")


def _holds_attributes(value: Any) -> bool:
    """Whether a value is an object that keeps plain attributes: of the user's classes, or a dataset of a library."""
    kind = type(value)
    if isinstance(value, type | types.ModuleType | types.GeneratorType) or hasattr(value, "__next__"):
        return False
    if not isinstance(getattr(value, "__dict__", None), dict):
        return False
    return is_own_module(kind.__module__) or _is_dataset(value)


def _is_content(value: Any) -> bool:
    """Whether an attribute is data or a setting; handles and objects of libraries are not."""
    if isinstance(value, (*_PLAIN, float, list, tuple, range, set, frozenset, deque, Mapping)):
        return True
    if isinstance(value, types.FunctionType | types.MethodType | types.SimpleNamespace):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return True
    return (hasattr(value, "shape") and hasattr(value, "dtype")) or hasattr(value, "iloc") or _holds_attributes(value)


def _is_dataset(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.utils.data.Dataset)


def _is_of_process(value: Any) -> bool:
    """Whether a setting tells a place, a moment or a number of this process, which another one has its own of."""
    if isinstance(value, str):
        return os.sep in value or len(_DIGIT.findall(value)) >= _DIGITS
    if isinstance(value, datetime.date | datetime.timedelta | uuid.UUID):
        return True
    return type(value) in (int, float) and _YEAR_2001 < value < _YEAR_2096


def _without_place(text: str) -> str:
    """Return a text without folders: absolute paths are others on a worker."""
    return os.path.basename(text) if os.path.isabs(text) else text
