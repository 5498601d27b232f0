"""Containers of Python's own."""

from __future__ import annotations

import gc
import hashlib
import types
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.edges import ATOMS, BY_NAME, VALUE, Kind, Left, State, has_attributes, kind_of
from det_native.heap.kinds.instances import Composite


def sample(data: Any) -> Any:
    """Return a checksum of bytes: of all if they are few, else of the ends and of single bytes all over."""
    if data.nbytes <= 64 << 10:
        return zlib.crc32(data)
    return zlib.crc32(data[:1024]), zlib.crc32(data[-1024:]), zlib.crc32(data[:: data.nbytes // 64 | 1].copy())


_BLOCK = 4 << 20


def digests(data: Any) -> tuple[str, ...]:
    """Return a digest of each block of bytes, so that a change of one place sends one block."""
    view = memoryview(data).cast("B")
    return tuple(digest(view[start : start + _BLOCK]) for start in range(0, view.nbytes, _BLOCK))


def changed_blocks(data: Any, before: tuple[str, ...], now: tuple[str, ...]) -> list[tuple[int, bytes]]:
    """Return the blocks whose digests differ, each with its offset; all if there are more or fewer than before."""
    view = memoryview(data).cast("B")
    chosen = [n for n, one in enumerate(now) if len(before) != len(now) or before[n] != one]
    return [(n * _BLOCK, bytes(view[n * _BLOCK : (n + 1) * _BLOCK])) for n in chosen]


def write_blocks(into: Any, blocks: list[tuple[int, bytes]]) -> None:
    """Write blocks into a flat array of bytes."""
    import numpy

    for start, data in blocks:
        into[start : start + len(data)] = numpy.frombuffer(data, "u1")


def digest(data: Any) -> str:
    """Return a short digest of bytes."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()[:20]


class ListKind(Kind):
    collected = True

    def take(self, obj: list[Any]) -> State:
        return list.copy(obj), None

    def put(self, obj: list[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        list.__setitem__(obj, slice(None), children)


class TupleKind(Kind):
    collected = True
    in_place = False

    def take(self, obj: tuple[Any, ...]) -> State:
        return tuple.__getitem__(obj, slice(None)), None


class DequeKind(Kind):
    collected = True

    def take(self, obj: deque[Any]) -> State:
        return list(deque.__iter__(obj)), obj.maxlen

    def put(self, obj: deque[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        deque.clear(obj)
        deque.extend(obj, children)


class DictKind(Kind):
    """Keys and values; a key that is no atom is a child as well, at its place."""

    collected = True
    base: type = dict

    def take(self, obj: dict[Any, Any]) -> State:
        return [*self.base.keys(obj), *self.base.values(obj)], None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        half = len(children) // 2
        keys = children[:half]
        return [*(("key", n) for n in range(half)), *(k if type(k) in ATOMS else ("of", n) for n, k in enumerate(keys))]

    def put(self, obj: dict[Any, Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        half = len(children) // 2
        before = dict(obj)
        self.base.clear(obj)
        for key, value in zip(children[:half], children[half:], strict=True):
            if isinstance(key, Left):
                continue
            if not isinstance(value, Left):
                self.base.__setitem__(obj, key, value)
            elif key in before:
                self.base.__setitem__(obj, key, before[key])


class OrderedDictKind(DictKind):
    base = OrderedDict


class DefaultDictKind(DictKind):
    def take(self, obj: defaultdict[Any, Any]) -> State:
        return [*super().take(obj)[0], obj.default_factory], None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [*super().labels(obj, children[:-1], facts), ("factory",)]

    def put(self, obj: defaultdict[Any, Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children[:-1], facts, content)
        if not isinstance(children[-1], Left):
            obj.default_factory = children[-1]


class SetKind(Kind):
    """Atoms by value; objects in the order of what they look like, as their order in the set is that of addresses."""

    collected = True

    def take(self, obj: set[Any]) -> State:
        atoms = frozenset(one for one in obj if type(one) in ATOMS)
        rest = [one for one in obj if type(one) not in ATOMS] if len(atoms) < len(obj) else []
        return sorted(rest, key=_looks) if len(rest) > 1 else rest, atoms

    def put(self, obj: set[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.clear()
        obj.update(facts, (one for one in children if not isinstance(one, Left)))


class FrozenSetKind(SetKind):
    in_place = False


def _looks(obj: Any) -> str:
    kind = kind_of(obj)
    if kind is VALUE:
        return f"{type(obj).__qualname__} {obj!r}"
    children, facts = kind.take(obj)
    plain = [repr(one) for one in children if type(one) in ATOMS]
    return f"{type(obj).__qualname__} {plain} {facts!r}"


class BytesKind(Kind):
    """``bytearray`` and ``array.array``."""

    def take(self, obj: Any) -> State:
        return (), (len(obj), digest(obj))

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return bytes(memoryview(obj).cast("B"))

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: bytes) -> None:
        del obj[:]
        obj.extend(content) if isinstance(obj, bytearray) else obj.frombytes(content)


class ThroughKind(Kind):
    """What only shows another object: the view of a dict, a descriptor, a bound method."""

    collected = True
    in_place = False

    def __init__(self, held: Callable[[Any], Sequence[Any]], remake: Callable[[Any], Any] | None = None) -> None:
        self._held, self._remake = held, remake

    def take(self, obj: Any) -> State:
        return self._held(obj), None

    def reduce(self, obj: Any) -> Any:
        return self._remake(obj) if self._remake else NotImplemented


class BoundBuiltin(Kind):
    """``names.append``: what it is bound to; a function of a module's has nothing."""

    collected = True
    in_place = False

    def take(self, obj: Any) -> State:
        owner = obj.__self__
        return () if owner is None or isinstance(owner, types.ModuleType | type) else (owner,), None


class ProxyKind(Kind):
    """``types.MappingProxyType``, ``memoryview``: never packed."""

    in_place = False
    stays = "a view of memory"
    quiet = True

    def take(self, obj: Any) -> State:
        return gc.get_referents(obj), None


def _composite(kind: Kind) -> Any:
    def of(cls: type) -> Kind:
        exact = cls.__module__ in ("builtins", "collections", "array")
        return kind if exact or not has_attributes(cls) else Composite(kind, cls)

    return of


def call_method(owner: Any, name: str) -> Any:
    """Return what a method gives: how views are made again."""
    return getattr(owner, name)()


def _view(name: str) -> ThroughKind:
    return ThroughKind(gc.get_referents, lambda view: (call_method, (gc.get_referents(view)[0], name)))


def _one(method: Any) -> tuple[Any, ...]:
    return (method.__func__,)


def _three(made: property) -> tuple[Any, ...]:
    return made.fget, made.fset, made.fdel


for _name, _kind in {
    "builtins.list": ListKind(),
    "builtins.tuple": TupleKind(),
    "builtins.dict": DictKind(),
    "builtins.set": SetKind(),
    "builtins.frozenset": FrozenSetKind(),
    "builtins.bytearray": BytesKind(),
    "array.array": BytesKind(),
    "collections.deque": DequeKind(),
    "collections.OrderedDict": OrderedDictKind(),
    "collections.defaultdict": DefaultDictKind(),
}.items():
    BY_NAME[_name] = _composite(_kind)
BY_NAME |= {
    "builtins.dict_keys": _view("keys"),
    "builtins.dict_values": _view("values"),
    "builtins.dict_items": _view("items"),
    "builtins.odict_keys": _view("keys"),
    "builtins.odict_values": _view("values"),
    "builtins.odict_items": _view("items"),
    "builtins.property": ThroughKind(_three, lambda p: (property, (*_three(p), p.__doc__))),
    "builtins.staticmethod": ThroughKind(_one, lambda m: (staticmethod, _one(m))),
    "builtins.classmethod": ThroughKind(_one, lambda m: (classmethod, _one(m))),
    "builtins.method": ThroughKind(lambda m: (m.__self__, m.__func__)),
    "builtins.builtin_function_or_method": BoundBuiltin(),
    "builtins.method-wrapper": BoundBuiltin(),
    "builtins.mappingproxy": ProxyKind(),
    "builtins.memoryview": ProxyKind(),
}
