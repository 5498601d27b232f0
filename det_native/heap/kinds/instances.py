"""Objects of classes, the user's or a library's, by their attributes; others by their pickle."""

from __future__ import annotations

import gc
import hashlib
import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.edges import (
    _FALLBACK,
    BY_NAME,
    Difference,
    Kind,
    Left,
    State,
    has_attributes,
    is_same_child,
    slots_of,
    stable_digest,
)
from det_native.heap.ownership import CAN_GO_ON, is_users

_UNSET = object()
# Flags of classes of which the sources of CPython say: made by a class statement; not to be changed.
_HEAP = 1 << 9
_IMMUTABLE = 1 << 8


class AttributesKind(Kind):
    """All of an object is in its attributes, and in its class, which may change. Slots are named by tuples.

    Parameters
    ----------
    kept : frozenset of str
        Attributes that are the process's own: never read, and an object keeps its own.
    """

    def __init__(self, kept: frozenset[str] = frozenset()) -> None:
        self._kept = kept

    def take(self, obj: Any) -> State:
        names: list[Any] = []
        children = [type(obj)]
        attributes = _attributes_of(obj)
        if attributes:
            names += attributes
            children += attributes.values()
        for name, slot in slots_of(type(obj)):
            value = _slot_value(slot, obj)
            if value is not _UNSET:
                names.append((name,))
                children.append(value)
        if self._kept:
            chosen = [place for place, name in enumerate(names) if name not in self._kept]
            children = [children[0], *(children[place + 1] for place in chosen)]
            names = [names[place] for place in chosen]
        return children, names

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [("class",), *(name if isinstance(name, str) else name[0] for name in facts)]

    def step(self, label: Any) -> str:
        return f".{label}" if isinstance(label, str) else ""

    def reduce(self, obj: Any) -> Any:
        if not is_users(type(obj)) and not getattr(type(obj), CAN_GO_ON, False):
            return NotImplemented
        children, names = self.take(obj)
        return object.__new__, (type(obj),), dict(zip(names, children[1:], strict=True)), None, None, fill_attributes

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        held = dict(zip(before[1], before[0][1:], strict=True)) if before else {}
        values = {
            name: value
            for name, value in zip(now[1], now[0][1:], strict=True)
            if name not in held or not is_same_child(held[name], value) or renewed(value)
        }
        names = frozenset(now[1])
        return [now[0][0], *values.values()], [*values], [name for name in held if name not in names]

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if isinstance(children[0], type) and type(obj) is not children[0]:
            object.__setattr__(obj, "__class__", children[0])
        slots = dict(slots_of(type(obj)))
        for name in content or ():
            if isinstance(name, str):
                _attributes_of(obj).pop(name, None)
            elif name[0] in slots and _slot_value(slots[name[0]], obj) is not _UNSET:
                slots[name[0]].__delete__(obj)
        for name, value in zip(facts, children[1:], strict=True):
            if isinstance(value, Left):
                continue
            if isinstance(name, str):
                _attributes_of(obj)[name] = value
            elif name[0] in slots:
                slots[name[0]].__set__(obj, value)


class ExceptionKind(AttributesKind):
    """An exception. One of the user's is made again past its ``__init__``, which may want other arguments."""

    def reduce(self, obj: BaseException) -> Any:
        if not is_users(type(obj)):
            return NotImplemented
        return type(obj).__new__, (type(obj), *obj.args), dict(vars(obj)), None, None, fill_attributes


def _attributes_of(obj: Any) -> dict[str, Any]:
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return attributes if type(attributes) is dict else {}


def fill_attributes(obj: Any, state: dict[Any, Any]) -> None:
    """Give a new object of the user's its attributes, past what its class does when it is pickled."""
    for name, value in state.items():
        if isinstance(name, str):
            _attributes_of(obj)[name] = value
        elif not isinstance(value, Left):
            object.__setattr__(obj, name[0], value)


def _slot_value(slot: Any, obj: Any) -> Any:
    try:
        return slot.__get__(obj)
    except AttributeError:
        return _UNSET


class Composite(Kind):
    """A container, or an object that is more than its attributes, of a class that adds attributes.

    Parameters
    ----------
    base : Kind
        Of what the class has without them.
    cls : type
    """

    def __init__(self, base: Kind, cls: type) -> None:
        self._base, self._attributes = base, AttributesKind()
        self.in_place, self.is_ordered = base.in_place, base.is_ordered

    def take(self, obj: Any) -> State:
        inner, inner_facts = self._base.take(obj)
        outer, names = self._attributes.take(obj)
        return [*inner, *outer], (len(inner), inner_facts, names)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        count, inner, names = facts
        outer = self._attributes.labels(obj, children[count:], names)
        return [*self._base.labels(obj, children[:count], inner), *(("attribute", label) for label in outer)]

    def unordered(self, children: Sequence[Any], facts: Any) -> int:
        return self._base.unordered(children[: facts[0]], facts[1])

    def step(self, label: Any) -> str:
        attribute = type(label) is tuple and label[0] == "attribute"
        return self._attributes.step(label[1]) if attribute else self._base.step(label)

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        inner, outer = self._parts(now)
        held = self._parts(before) if before else (None, None)
        children, facts, content = self._base.difference(obj, held[0], inner, renewed)
        attributes, names, gone = self._attributes.difference(obj, held[1], outer, renewed)
        return [*children, *attributes], (len(children), facts, names), (content, gone)

    @staticmethod
    def _parts(state: State) -> tuple[State, State]:
        children, (count, facts, names) = state
        return (children[:count], facts), (children[count:], names)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        count, inner, names = facts
        self._base.put(obj, children[:count], inner, content[0])
        self._attributes.put(obj, children[count:], names, content[1])


class _Shallow(pickle.Pickler):
    """Pickles one object, with its children by their places."""

    def __init__(self, into: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(into, protocol=4)
        self._places = places

    def persistent_id(self, obj: Any) -> Any:
        return self._places.get(id(obj))


class ReduceKind(Kind):
    """An object of an extension: what the collector sees that it holds, and a digest of its pickle without that.

    Parameters
    ----------
    cls : type
    """

    def __init__(self, cls: type) -> None:
        self.in_place = "__setstate__" in {name for base in cls.__mro__[:-1] for name in vars(base)}
        # Pickles of libraries may have in them what differs from process to process.
        self._compared = cls.__module__ in ("builtins", "itertools")

    def take(self, obj: Any) -> State:
        children = [child for child in gc.get_referents(obj) if not isinstance(child, type | str)]
        into = io.BytesIO()
        try:
            _Shallow(into, {id(child): place for place, child in enumerate(children)}).dump(obj)
        except Exception:  # noqa: BLE001 (an object of a library may raise anything)
            return children, None
        return children, hashlib.sha1(into.getvalue(), usedforsecurity=False).hexdigest()

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        reduced = obj.__reduce_ex__(4)
        return reduced[2] if len(reduced) > 2 else None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if content is not None:
            obj.__setstate__(content)
        elif hasattr(obj, "__next__"):  # an iterator at its end has no place
            for _ in obj:
                pass

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return stable_digest(facts) if exact and self._compared else ""


def _fallback(cls: type) -> Kind:
    python = bool(cls.__flags__ & _HEAP) and not cls.__flags__ & _IMMUTABLE and type(cls).__name__ != "pybind11_type"
    beyond = [base for base in cls.__mro__[:-1] if not base.__flags__ & _HEAP or base.__flags__ & _IMMUTABLE]
    if python and not beyond:
        return AttributesKind()
    plain = not {name for base in cls.__mro__[:-1] for name in vars(base)} & {"__reduce__", "__reduce_ex__"}
    if has_attributes(cls) and plain and python:
        return Composite(ReduceKind(cls), cls) if hasattr(cls, "__setstate__") else AttributesKind()
    return ReduceKind(cls)


_FALLBACK.append(_fallback)
BY_NAME["builtins.BaseException"] = ExceptionKind()
