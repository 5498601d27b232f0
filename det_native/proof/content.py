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
import functools
import hashlib
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.proof.arrays import BUS_BYTES, Arrays
from det_native.proof.attributes import changed_names, is_own_module, settings_in
from det_native.proof.configurations import configuration_of
from det_native.proof.fingerprint import Fingerprint
from det_native.proof.graphs import Graphs
from det_native.proof.modules import module_settings
from det_native.proof.own_values import is_own_value, is_path, portable_text, without_folder
from det_native.proof.source import source_digest
from det_native.proof.words import describe

_PARTS = 50_000
_PARTS_OF_SET = 5_000
_FEW = 16
_JOINED = 8 << 10  # bytes of an array, on average
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
    reader.read(value, 0)
    into = reader.into
    exact, loose = into.exact.hexdigest()[:32], into.loose.hexdigest()
    return Content(exact, loose, into.blocks.written(), describe(value), into.partly, ", ".join(into.not_compared))


class _Reader:
    """Reads one value into the two fingerprints and the blocks."""

    def __init__(self, *, masked: bool, skipped: frozenset[int]) -> None:
        self.into = Fingerprint()
        self._arrays = Arrays(self.into, self._sequence)
        self._graphs = Graphs(self.into, self._arrays, self.read)
        self._masked = masked
        self._skipped = skipped
        self._parts_left = _PARTS
        self._in_library = 0
        self._inside: dict[int, int] = {}

    def read(self, value: Any, depth: int) -> None:
        self._parts_left -= 1
        if self._parts_left < 0 or depth > _DEPTH:
            self.into.partly = f"its first {_PARTS:,} parts" if self._parts_left < 0 else f"its first {_DEPTH} levels"
            return
        if isinstance(value, enum.Enum):
            self.into.both("enum", type(value).__qualname__, value.name)
            self.read(value.value, depth + 1)
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
            self._inside[id(value)] = depth
            try:
                self._read_object(value, depth)
            finally:
                del self._inside[id(value)]

    def _text(self, text: str) -> str:
        if self._in_library and not text.isidentifier():
            return ""  # names and places are the library's own affair
        return portable_text(text, masked=self._masked)

    def _read_object(self, value: Any, depth: int) -> None:
        read = (
            self._arrays.reader(value)
            or self._container_reader(value)
            or self._library_reader(value)
            or self._object_reader(value)
        )
        read(value, depth)

    def _container_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        if isinstance(value, Mapping):
            return self._mapping
        if isinstance(value, list | tuple | deque | range):
            return self._sequence
        return self._set if isinstance(value, set | frozenset) else None

    def _library_reader(self, value: Any) -> Callable[[Any, int], None] | None:
        """Return what reads an object of TensorFlow, Keras or PyTorch; None if it is not theirs."""
        if self._graphs.reads(value):
            return self._graphs.dataset
        torch = sys.modules.get("torch")
        if torch is not None:
            if isinstance(value, torch.nn.Module):
                return self._module
            if isinstance(value, torch.utils.data.DataLoader):
                return self._loader
            if isinstance(value, torch.Generator):
                return lambda generator, depth: self.read(generator.get_state(), depth + 1)
        return self._configured if hasattr(type(value), "get_config") else None

    def _object_reader(self, value: Any) -> Callable[[Any, int], None]:
        if isinstance(value, types.FunctionType):
            return self._function
        if isinstance(value, types.MethodType):
            return lambda method, depth: self._all((method.__func__, method.__self__), depth)
        if isinstance(value, functools.partial):
            return lambda partial, depth: self._all((partial.func, partial.args, partial.keywords), depth)
        if isinstance(value, types.SimpleNamespace | argparse.Namespace):
            return lambda namespace, depth: self._mapping(vars(namespace), depth)
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return lambda named, depth: self.into.both("name", getattr(named, "__qualname__", named.__name__))
        return self._object

    def _all(self, parts: Iterable[Any], depth: int) -> None:
        for part in parts:
            self.read(part, depth + 1)

    def _mapping(self, value: Any, depth: int) -> None:
        self.into.both("mapping", type(value).__name__, str(len(value)))
        for key, element in sorted(value.items(), key=lambda item: repr(item[0])):
            self.read(key, depth + 1)
            self.read(element, depth + 1)

    def _set(self, value: Any, depth: int) -> None:
        # Which elements come first differs from process to process: of a large set only their number counts.
        if set(map(type, value)) <= _WHOLE:
            digests = [hashlib.sha256(repr(sorted(map(repr, value))).encode("utf-8", "surrogatepass")).hexdigest()]
        elif len(value) <= _PARTS_OF_SET:
            digests = sorted(content_of(element, masked=self._masked).exact for element in value)
        else:
            digests = []
            self.into.partly = "the number and the kind of the elements"
        self.into.both("set", str(len(value)), *digests)

    def _object(self, value: Any, depth: int) -> None:
        """Read any other object: one of the user's by its settings, one of a library by the data that it holds."""
        self.into.kind(value)
        if is_own_module(type(value).__module__):
            self._attributes(settings_in(value), depth)
            return
        outer, self._in_library = self._in_library, self._in_library + 1
        try:
            if self._in_library > _DEPTH_OF_LIBRARY:
                return
            public = _public_attributes(value)
            if _has_own_pickle(value) or not public:
                self._pickled(value, depth)
            else:
                self._attributes(public, depth)
        finally:
            self._in_library = outer

    def _attributes(self, attributes: Iterable[tuple[str, Any]], depth: int) -> None:
        for name, attribute in attributes:
            self.into.both("attribute", name)
            self._setting(attribute, depth)

    def _setting(self, value: Any, depth: int) -> None:
        """Read an attribute; what of it cannot be read, a lock or a log, is nobody's data."""
        before = list(self.into.not_compared)
        self.read(value, depth + 1)
        self.into.not_compared = before

    def _pickled(self, value: Any, depth: int) -> None:
        """Read an object by what it would be pickled by."""
        try:
            # An iterator would be read to its end, or copied: nothing of it is compared.
            reduced = None if hasattr(value, "__next__") else value.__reduce_ex__(2)
        except Exception:  # noqa: BLE001 (a library's, or a user's own)
            reduced = None
        if reduced is None:
            self.into.not_compared.append(type(value).__name__)
        elif not isinstance(reduced, str):
            arguments, state = reduced[1], reduced[2] if len(reduced) > 2 else None
            if not state and all(isinstance(argument, type) or argument is None for argument in arguments or ()):
                self.into.not_compared.append(type(value).__name__)  # it has nothing but its class
            self._all((*(arguments or ()), state), depth)

    def _configured(self, value: Any, depth: int) -> None:
        """Read an object of Keras, or of a library like it, that tells its configuration."""
        self.into.kind(value)
        configuration, functions, weights = configuration_of(value)
        self._all((configuration, functions, weights), depth)

    def _sequence(self, value: Any, depth: int) -> None:
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
            self._arrays.array(array, depth)
            return
        self._all(value, depth)

    def _module(self, module: Any, depth: int) -> None:
        for name, part in module.named_modules():
            self.into.both("module", name, type(part).__qualname__, part.extra_repr())
            self.read(plain_settings(part), depth + 1)
        for path, value in sorted(module_settings(module).items()):
            self.into.both("attribute", path)
            self._setting(value, depth)
        for name, tensor in module.state_dict().items():
            self.into.both("state", name)
            self.read(tensor, depth + 1)

    def _loader(self, loader: Any, depth: int) -> None:
        self.into.kind(loader)
        self.into.both(str(loader.batch_size), str(loader.drop_last), type(loader.sampler).__name__)
        self.read(loader.dataset, depth + 1)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        if not is_own_module(function.__module__ or ""):
            self.into.both("function", str(function.__module__), function.__qualname__)
            return
        self.into.both("function", function.__qualname__, source_digest(function.__code__) or "")
        for _, value in closure_of(function):
            self._setting(value, depth)
        self.read(function.__defaults__, depth + 1)
        self.read(function.__kwdefaults__, depth + 1)


def plain_settings(value: Any) -> dict[str, Any]:
    """Return the plain settings of an object by name, without those that begin with an underscore."""
    kinds = (bool, int, float, str, list, tuple)
    return {name: setting for name, setting in settings_in(value) if type(setting) in kinds and name[0] != "_"}


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
        or sum(part.nbytes for part in value) > min(_JOINED * len(value), BUS_BYTES)
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
