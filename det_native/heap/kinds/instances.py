"""Objects of classes, the user's or a library's, by their attributes; others by their pickle."""

from __future__ import annotations

import gc
import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import _FALLBACK, Kind, Left, State, has_attributes, slots_of
from det_native.heap.ownership import is_users

_UNSET = object()
_IMMUTABLE = 1 << 8
_HEAP = 1 << 9


class AttributesKind(Kind):
    """All of an object is in its attributes, and in its class, which may change.

    Parameters
    ----------
    kept : frozenset of str
        Attributes that are the process's own: never read, and an object keeps its own.
    """

    collected = attributed = True

    def __init__(self, kept: frozenset[str] = frozenset()) -> None:
        self._kept = kept

    def take(self, obj: Any) -> State:
        names: list[Any] = []
        children = [type(obj)]
        attributes = getattr(obj, "__dict__", None)
        if type(attributes) is dict:
            names += attributes
            children += attributes.values()
        for name, slot in slots_of(type(obj)):
            value = _slot_value(slot, obj)
            if value is not _UNSET:
                names.append((name,))
                children.append(value)
        if self._kept:
            chosen = [n for n, name in enumerate(names) if name not in self._kept]
            children = [children[0], *(children[n + 1] for n in chosen)]
            names = [names[n] for n in chosen]
        return children, names

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [("class",), *(name if isinstance(name, str) else f"{name[0]}" for name in facts)]

    def reduce(self, obj: Any) -> Any:
        if not is_users(type(obj)):
            return NotImplemented
        children, names = self.take(obj)
        return object.__new__, (type(obj),), dict(zip(names, children[1:], strict=True)), None, None, fill_attributes

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if isinstance(children[0], type) and type(obj) is not children[0]:
            object.__setattr__(obj, "__class__", children[0])
        attributes = getattr(obj, "__dict__", None)
        before = dict(attributes) if attributes else {}
        slots = dict(slots_of(type(obj)))
        if attributes:
            attributes.clear()
            attributes.update((name, before[name]) for name in self._kept & before.keys())
        for name in {name for (name,) in (one for one in facts if isinstance(one, tuple))} ^ slots.keys():
            if name in slots and _slot_value(slots[name], obj) is not _UNSET:
                slots[name].__delete__(obj)
        for name, value in zip(facts, children[1:], strict=True):
            if isinstance(name, tuple):
                if not isinstance(value, Left):
                    slots[name[0]].__set__(obj, value)
            elif not isinstance(value, Left):
                attributes[name] = value
            elif name in before:
                attributes[name] = before[name]


def fill_attributes(obj: Any, state: dict[Any, Any]) -> None:
    """Give a new object of the user's its attributes, past what its class does when it is pickled."""
    for name, value in state.items():
        if isinstance(name, str):
            vars(obj)[name] = value
        elif not isinstance(value, Left):
            object.__setattr__(obj, name[0], value)


def _slot_value(slot: Any, obj: Any) -> Any:
    try:
        return slot.__get__(obj)
    except AttributeError:
        return _UNSET


class Composite(Kind):
    """A container, or an object that is more than its attributes, of a class that adds attributes."""

    def __init__(self, base: Kind, cls: type) -> None:
        self._base, self._attributes = base, AttributesKind()
        self.in_place = base.in_place
        self.collected = self.attributed = base.collected

    def take(self, obj: Any) -> State:
        inner, inner_facts = self._base.take(obj)
        outer, names = self._attributes.take(obj)
        return [*inner, *outer], (len(inner), inner_facts, names)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        count, inner, names = facts
        outer = self._attributes.labels(obj, children[count:], names)
        return [*self._base.labels(obj, children[:count], inner), *(("attribute", one) for one in outer)]

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return self._base.content(obj, before and before[1], now[1])

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        count, inner, names = facts
        self._base.put(obj, children[:count], inner, content)
        self._attributes.put(obj, children[count:], names, None)


class _Shallow(pickle.Pickler):
    """Pickles one object, with its children by their places."""

    def __init__(self, into: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(into, protocol=4)
        self._places = places

    def persistent_id(self, obj: Any) -> Any:
        return self._places.get(id(obj))


class ReduceKind(Kind):
    """An object of an extension: what the collector sees that it holds, and a digest of its pickle without that."""

    def __init__(self, cls: type) -> None:
        self.in_place = "__setstate__" in {name for base in cls.__mro__[:-1] for name in vars(base)}

    def take(self, obj: Any) -> State:
        children = [one for one in gc.get_referents(obj) if not isinstance(one, type | str)]
        into = io.BytesIO()
        try:
            _Shallow(into, {id(one): n for n, one in enumerate(children)}).dump(obj)
        except Exception:  # noqa: BLE001 (an object of a library may raise anything)
            return children, None
        return children, hashlib.sha1(into.getvalue(), usedforsecurity=False).hexdigest()

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.__reduce_ex__(4)[2] if self.in_place else None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.__setstate__(content)


def _fallback(cls: type) -> Kind:
    python = bool(cls.__flags__ & _HEAP) and not cls.__flags__ & _IMMUTABLE and type(cls).__name__ != "pybind11_type"
    beyond = [base for base in cls.__mro__[:-1] if not base.__flags__ & _HEAP or base.__flags__ & _IMMUTABLE]
    if python and not beyond:
        return AttributesKind()
    if has_attributes(cls) and cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ is object.__reduce__ and python:
        return AttributesKind() if not hasattr(cls, "__setstate__") else Composite(ReduceKind(cls), cls)
    return ReduceKind(cls)


_FALLBACK.append(_fallback)
