"""How values travel, or why they do not: in the format of their kind, else pickled, what they share in one pickle.

Classes and functions of cells go by reference: their cells run again before. What a slow cell has changed of an object
that a quick one makes goes in place there; see ``det_native.inspection.objects``.
"""

from __future__ import annotations

import copy
import io
import pickle
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import cloudpickle

from det_native.capture.facts import human_size, size_of, type_name
from det_native.capture.secrets import looks_secret, text_of_bytes
from det_native.inspection.adapter import Encoded
from det_native.inspection.objects import FILLED, Root
from det_native.inspection.registry import adapter_of

NO_LIMIT = 1 << 62
#: The method by which an object of det_native's own travels, else than it is pickled.
TRAVELS = "_det_travels"
_ATOMS = frozenset({int, float, bool, complex, type(None)})
_CODE = type | types.FunctionType
_FAILURES = (
    *(pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError, ValueError, RuntimeError),
    OSError,
)


class CannotSendError(ValueError):
    """A value cannot travel; the message says why in words that fit after the value's name."""

    def __init__(self, message: str, *, remedy: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy
        self.kind = kind


@dataclass(frozen=True)
class Packed:
    """Values as bytes, and what the program has to have by then: `code` are names of classes and functions.

    `holds_model`: a part of a model, or an optimizer's, is among them.
    """

    encoded: Encoded
    code: frozenset[str] = frozenset()
    holds_model: bool = False


def encode(
    name: str,
    namespace: Mapping[str, Any],
    *,
    declared: bool = False,
    limit: int = NO_LIMIT,
    is_local: Callable[[str], bool] = lambda _: False,
) -> Packed:
    """Return the value of a name: in the format of its kind, or pickled.

    Parameters
    ----------
    name : str
    namespace : mapping
        Of the notebook.
    declared : bool
        The user has named it: it travels even if it holds what looks like a secret.
    limit : int
        Bytes that may not be exceeded.
    is_local : callable
        Whether a module (by name) is a file of the user's.

    Raises
    ------
    CannotSendError
        Something in it does not travel.
    """
    plain = _encode_plain(name, namespace[name], declared=declared, limit=limit)
    if plain is not None:
        return Packed(plain)
    return pack([name], namespace, checked=declared, limit=limit, is_local=is_local)


def pack(
    names: Collection[str],
    namespace: Mapping[str, Any],
    *,
    states: Collection[str] = (),
    checked: bool = False,
    limit: int = NO_LIMIT,
    is_local: Callable[[str], bool] = lambda _: False,
) -> Packed:
    """Return the values of names in one pickle.

    Parameters
    ----------
    names : collection of str
    namespace : mapping
        Of the notebook.
    states : collection of str
        Those of which only the state travels, for an object that is there.
    checked : bool
        They travel even if they hold what looks like a secret: the user has named them, or they were searched before.
    limit : int
        Bytes that may not be exceeded.
    is_local : callable
        Whether a module (by name) is a file of the user's.

    Raises
    ------
    CannotSendError
        Something in a value does not travel.
    """
    packing = _Packing(namespace, checked, limit, is_local)
    try:
        content = packing.packed(sorted(names), states)
    except _FAILURES as error:
        if isinstance(error, CannotSendError):
            raise
        value = namespace[min(names)]
        raise CannotSendError(
            type_name(value), remedy=f"It cannot be pickled ({error}).", kind="unpicklable"
        ) from error
    described = ", ".join(dict.fromkeys(type_name(namespace[name]) for name in sorted(names)))
    encoded = Encoded("objects", content, described, frozenset(packing.modules))
    return Packed(encoded, frozenset(packing.code), packing.holds_model)


def has_state(value: Any) -> bool:
    """Whether a value has numbers that an object of the same build can take."""
    adapter = adapter_of(type(value))
    try:
        return adapter is not None and adapter.state(value) is not None
    except _FAILURES:  # a class may be derived from one that is known, and not do what that does
        return False


@dataclass
class _Packing:
    namespace: Mapping[str, Any]
    checked: bool
    limit: int
    is_local: Callable[[str], bool]
    references: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # as long as places in memory are names of objects
    code: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    holds_model: bool = False
    name: str = ""

    def packed(self, names: Sequence[str], states: Collection[str]) -> bytes:
        objects = {id(self.namespace[name]): self.namespace[name] for name in names}
        of_object = {key: tuple(one for one in names if self.namespace[one] is objects[key]) for key in objects}
        kinds = {key: _kind(value, of_object[key], states) for key, value in objects.items()}
        order = sorted(objects, key=lambda key: _rank(objects[key], kinds[key]))
        roots, rest = [], {}
        for number, key in enumerate(order):  # containers come first: all may refer to them
            value, self.name = objects[key], of_object[key][0]
            own = b""
            if kinds[key] == "alone":
                own = self._pickled(value)
            elif kinds[key] == "state":
                adapter = adapter_of(type(value))
                assert adapter is not None
                own = self._pickled(adapter.state(value))
            else:
                rest[number] = copy.copy(value) if kinds[key] in FILLED else value
            if kinds[key] != "rest":
                self._refer(value, number)
            roots.append(tuple(Root(of_object[key], kinds[key], own)))
        return self._written((roots, self._pickled(rest)))

    def _refer(self, value: Any, number: int) -> None:
        """Have what is pickled from now on refer to a root and its parts."""
        adapter = adapter_of(type(value))
        parts = [] if adapter is None or type(value) in FILLED.values() else [*adapter.shared_parts(value)]
        self.kept += parts
        for place, part in enumerate(parts):
            self.references.setdefault(id(part), ("part", number, place))
        self.references[id(value)] = ("root", number)

    def _pickled(self, value: Any) -> bytes:
        with _bounded(self.limit, self.namespace[self.name]) as writer:
            pickler = _Pickler(writer, self)
            pickler.dump(value)
        self.kept.append(pickler)
        return b"".join(writer.parts)

    def _written(self, value: Any) -> bytes:
        file = io.BytesIO()
        pickle.dump(value, file, protocol=5)
        if file.tell() > self.limit:
            raise CannotSendError(human_size(file.tell()), kind="large")
        return file.getvalue()

    def reference(self, part: Any) -> tuple[Any, ...] | None:
        """Return the reference that is pickled in place of an object, having looked whether it may travel."""
        kind = type(part)
        if kind in _ATOMS:
            return None
        if id(part) in self.references:
            return self.references[id(part)]
        if not self.checked:
            _refuse_secrets(self.name, part)
            if (size := size_of(part)) is not None and size > self.limit:
                raise CannotSendError(f"{type_name(part)}, {human_size(size)}", kind="large")
        if kind is str or kind is bytes:
            return None
        if isinstance(part, _CODE):
            return self._code(part)
        adapter = adapter_of(kind)
        if adapter is not None and adapter.never_sent:
            if not adapter.can_be_rebuilt:
                raise _refused_kind(part, adapter.never_sent)
            self.holds_model = True
        self._note(part.__name__ if isinstance(part, types.ModuleType) else kind.__module__)
        return None

    def _note(self, module: object) -> None:
        if isinstance(module, str) and module not in self.seen:
            self.seen.add(module)
            if self.is_local(module):
                self.modules.add(module)

    def _code(self, part: Any) -> tuple[Any, ...] | None:
        """Return the reference to a class or function of a cell; those of modules are imported."""
        if part.__module__ != "__main__":
            self._note(part.__module__)
            return None
        name = part.__qualname__
        there = _at(self.namespace, name)
        if there is not part:
            name = next((one for one, value in self.namespace.items() if value is part and one[0] != "_"), "")
        if not name:
            again = "has made anew since" if there is not None else "defines, and no name of the notebook has"
            raise CannotSendError(f"is made of `{part.__qualname__}`, which a cell {again}", kind="notebook")
        self.code.add(name.partition(".")[0])
        return "code", name


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def __init__(self, file: Any, packing: _Packing) -> None:
        super().__init__(file, protocol=5)
        self._packing = packing

    def persistent_id(self, obj: Any) -> Any:
        return self._packing.reference(obj)

    def reducer_override(self, obj: Any) -> Any:
        travelling = getattr(type(obj), TRAVELS, None)
        if travelling is not None:
            return travelling(obj)
        adapter = adapter_of(type(obj))
        reduced = None if adapter is None else adapter.reduced(obj)
        return super().reducer_override(obj) if reduced is None else reduced


def _kind(value: Any, names: Collection[str], states: Collection[str]) -> str:
    if type(value).__name__ in FILLED and type(value) in FILLED.values():
        return type(value).__name__
    if not set(states).isdisjoint(names):
        return "state"
    adapter = adapter_of(type(value))
    if adapter is None:
        return "rest"
    is_numbers = adapter.is_data and has_state(value)
    return "alone" if is_numbers or adapter.shared_parts(value) else "rest"


def _rank(value: Any, kind: str) -> tuple[int, int]:
    """Containers, then models, that with the most parts first as others may be parts of it, then all else."""
    adapter = adapter_of(type(value))
    parts = len(adapter.shared_parts(value)) if adapter is not None and kind in ("alone", "state") else 0
    return (0 if kind in FILLED else 1 if parts else 2), -parts


def _at(namespace: Mapping[str, Any], path: str) -> Any:
    name, *attributes = path.split(".")
    return reduce(lambda value, attribute: getattr(value, attribute, None), attributes, namespace.get(name))


class _TooLargeError(Exception):
    pass


class _BoundedWriter(io.RawIOBase):
    """Collects what is written, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        size = memoryview(part).nbytes  # large arrays come as buffers
        self.size += size
        if self.size > self.limit:
            raise _TooLargeError
        self.parts.append(bytes(part))
        return size


@contextmanager
def _bounded(limit: int, value: Any) -> Iterator[_BoundedWriter]:
    """Give a file to pickle a value into; that it comes to more than so many bytes is its error."""
    writer = _BoundedWriter(limit)
    try:
        yield writer
    except _TooLargeError:
        size = size_of(value)
        raise CannotSendError(
            f"{type_name(value)}, {human_size(size) if size else 'over ' + human_size(limit)}", kind="large"
        ) from None


def _encode_plain(name: str, value: Any, *, declared: bool, limit: int) -> Encoded | None:
    """Return an array, a table or a tensor in the format of its kind, within the limit; None of all else.

    Raises
    ------
    CannotSendError
        It looks like a secret.
    """
    if not declared and (size_of(value) or limit) >= limit:
        return None
    if not declared:
        _refuse_secrets(name, value)
    adapter = adapter_of(type(value))
    return None if adapter is None else adapter.codec(value)


def _refused_kind(value: Any, kind: str) -> CannotSendError:
    """Return the error of what never travels."""
    remedy = "Create it inside the function or in setup()."
    if kind in ("model", "optimizer", "dataset", "loader"):
        remedy = "Run the cell that makes it again, so that its code can be sent."
    return CannotSendError(type_name(value), remedy=remedy, kind=kind)


def _refuse_secrets(name: str, part: Any) -> None:
    """Raise if an object by itself, without those in it, looks like a secret."""
    if isinstance(part, bytes | bytearray):
        part = text_of_bytes(part)
    if isinstance(part, str) and looks_secret(part, name):
        raise CannotSendError("looks like a secret", kind="secret")
    if isinstance(part, dict):
        for key, inner in part.items():
            if isinstance(key, str) and isinstance(inner, str) and looks_secret(inner, key):
                raise CannotSendError("holds what looks like a secret", kind="secret")
        return
    adapter = adapter_of(type(part))
    if adapter is not None and any(map(looks_secret, adapter.texts(part))):
        raise CannotSendError("holds what looks like a secret", kind="secret")
