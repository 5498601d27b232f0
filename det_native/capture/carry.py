"""How values travel, or why they do not: pickled, and what they share in one pickle.

Classes and functions of cells go by reference: their cells run again before. What a slow cell has changed of an object
that a quick one makes goes in place there; see ``det_native.heap.values``.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from det_native.capture.never_sent import BUILT_AGAIN, never_sent
from det_native.capture.secrets import looks_secret, text_of_bytes
from det_native.capture.value_formats import size_of, tells_content, texts_in, type_name
from det_native.schema.sizes import shown_size

NO_LIMIT = 1 << 62
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

    `modules` are local modules that loading them imports. `holds_model`: a part of a model, or an optimizer's, is among
    them.
    """

    content: bytes
    description: str
    modules: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    holds_model: bool = False


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
    from det_native.heap.packing import Output
    from det_native.heap.values import write_values

    values = {name: namespace[name] for name in sorted(names)}
    value = values[min(names)]

    def too_large() -> None:
        text = shown_size(size) if (size := size_of(value)) else f"over {shown_size(limit)}"
        raise CannotSendError(f"{type_name(value)}, {text}", kind="large")

    packing = _Packing(min(names), namespace, checked, limit, is_local, leaves_out=bool(states))
    try:
        output, missing = write_values(values, lambda: Output(limit, too_large), packing.look, only_state=states)
    except _FAILURES as error:
        if isinstance(error, CannotSendError):
            raise
        raise _unpicklable(value, str(error)) from error
    if missing and not states:
        raise _unpicklable(value, missing[0][1])
    described = ", ".join(dict.fromkeys(map(type_name, values.values())))
    code, modules = frozenset(packing.code), frozenset(packing.modules)
    return Packed(b"".join(output.parts), described, modules, code, packing.holds_model)


def _unpicklable(value: Any, why: str) -> CannotSendError:
    return CannotSendError(type_name(value), remedy=f"It cannot be pickled ({why}).", kind="unpicklable")


@dataclass
class _Packing:
    name: str
    namespace: Mapping[str, Any]
    checked: bool
    limit: int
    is_local: Callable[[str], bool]
    leaves_out: bool
    code: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    harmless: set[type] = field(default_factory=set)  # classes of which each object may travel
    holds_model: bool = False

    def look(self, part: Any) -> Any:
        """Return the reference that is pickled in place of an object, having looked whether it may travel."""
        kind = type(part)
        if kind in self.harmless:
            return None
        if not self.checked:
            _refuse_secrets(self.name, part)
            if (size := size_of(part)) is not None and size > self.limit:
                raise CannotSendError(f"{type_name(part)}, {shown_size(size)}", kind="large")
        if kind is str or kind is bytes:
            return None
        try:
            return self._reference(part)
        except CannotSendError as error:
            if self.leaves_out:
                from det_native.heap.values import stand_in

                return stand_in(str(error))
            raise

    def _reference(self, part: Any) -> Any:
        if issubclass(type(part), _CODE):
            return self._code(part)
        what = never_sent(part)
        if what and what not in BUILT_AGAIN:
            raise _refused_kind(part, what)
        self.holds_model |= bool(what)
        kind = type(part)
        self._note(part.__name__ if issubclass(kind, types.ModuleType) else kind.__module__)
        if not issubclass(kind, dict | bytearray | types.ModuleType) and not tells_content(kind):
            self.harmless.add(kind)
        return None

    def _note(self, module: object) -> None:
        if isinstance(module, str) and module not in self.seen:
            self.seen.add(module)
            if self.is_local(module):
                self.modules.add(module)

    def _code(self, part: Any) -> Any:
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
        from det_native.heap.values import code_at

        return code_at(name)


def _at(namespace: Mapping[str, Any], path: str) -> Any:
    name, *attributes = path.split(".")
    return reduce(lambda value, attribute: getattr(value, attribute, None), attributes, namespace.get(name))


def _refused_kind(value: Any, kind: str) -> CannotSendError:
    """Return the error of what never travels."""
    remedy = "Create it inside the function or in setup()."
    if kind in ("model", "optimizer", "dataset", "loader"):
        remedy = "Run the cell that makes it again, so that its code can be sent."
    return CannotSendError(type_name(value), remedy=remedy, kind=kind)


def _refuse_secrets(name: str, part: Any) -> None:
    """Raise if an object by itself, without those in it, looks like a secret."""
    if issubclass(type(part), bytes | bytearray):
        part = text_of_bytes(part)
    if issubclass(type(part), str):
        if looks_secret(part, name):
            raise CannotSendError("looks like a secret", kind="secret")
    elif issubclass(type(part), dict):
        for key, inner in dict.items(part):
            if type(key) is str and type(inner) is str and looks_secret(inner, key):
                raise CannotSendError("holds what looks like a secret", kind="secret")
    elif any(map(looks_secret, texts_in(part))):
        raise CannotSendError("holds what looks like a secret", kind="secret")
