"""Containers of Python's own."""

from __future__ import annotations

import gc
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from operator import is_, ne
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import (
    ATOMS,
    BY_NAME,
    Difference,
    Kind,
    Left,
    State,
    Stays,
    has_attributes,
    is_same_child,
    is_value,
    stable_digest,
)
from det_native.heap.kinds.instances import Composite


def _with_kept(before: Sequence[Any], children: Sequence[Any]) -> list[Any]:
    """Return children, with what was at the place of one that could not travel."""
    return [
        before[place] if isinstance(child, Left) and place < len(before) else child
        for place, child in enumerate(children)
    ]


class ListKind(Kind):
    """``list``: of one that has only grown the new part travels."""

    def take(self, obj: list[Any]) -> State:
        return list.copy(obj), None

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        old = before[0] if before else ()
        grown = len(old) <= len(now[0]) and all(map(is_, old, now[0]))
        if grown and (ATOMS.issuperset(map(type, old)) or not any(map(renewed, old))):
            return now[0][len(old) :], None, len(old)
        return now[0], None, 0

    def put(self, obj: list[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        list.__setitem__(obj, slice(content, None), _with_kept(list.copy(obj)[content:], children))


class TupleKind(Kind):
    """``tuple``, named ones too."""

    in_place = False

    def take(self, obj: tuple[Any, ...]) -> State:
        return tuple.__getitem__(obj, slice(None)), None


class DequeKind(Kind):
    """``collections.deque``."""

    def take(self, obj: deque[Any]) -> State:
        return list(deque.__iter__(obj)), obj.maxlen

    def put(self, obj: deque[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        before = list(deque.__iter__(obj))
        deque.clear(obj)
        deque.extend(obj, _with_kept(before, children))


def _pairs(children: Sequence[Any]) -> dict[Any, Any]:
    """Return keys with values, of children that are all keys and then all values."""
    half = len(children) // 2
    return dict(zip(children[:half], children[half:], strict=False))


class DictKind(Kind):
    """Keys and values; a key that is no atom is a child as well, at its place."""

    base: Any = dict

    def take(self, obj: dict[Any, Any]) -> State:
        return [*self.base.keys(obj), *self.base.values(obj)], None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        half = len(children) // 2
        keys = children[:half]
        values = (key if type(key) in ATOMS else ("value", place) for place, key in enumerate(keys))
        return [*(("key", place) for place in range(half)), *values]

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        old, new = _pairs(before[0] if before else ()), _pairs(now[0])
        keys = [key for key in old if key in new]
        # Of keys that are objects, and where the order has changed, all travels.
        if before is None or not ATOMS.issuperset(map(type, (*old, *new))) or any(map(ne, keys, new)):
            return *now, None
        values = {
            key: value
            for key, value in new.items()
            if key not in old or not is_same_child(old[key], value) or renewed(value)
        }
        return [*values, *values.values(), *now[0][2 * len(new) :]], now[1], [key for key in old if key not in new]

    def put(self, obj: dict[Any, Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        before = dict(obj)
        if content is None:
            self.base.clear(obj)
        for key in content or ():
            self.base.pop(obj, key, None)
        for key, value in _pairs(children).items():
            if isinstance(key, Left):
                continue
            if not isinstance(value, Left):
                self.base.__setitem__(obj, key, value)
            elif key in before:
                self.base.__setitem__(obj, key, before[key])

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        # The order of keys may come from a set.
        half = len(children) // 2
        pairs = zip(children[:half], children[half:], strict=False)
        return (
            stable_digest({(key, value if is_value(value) else ...) for key, value in pairs if type(key) in ATOMS})
            if (exact)
            else ""
        )


class OrderedDictKind(DictKind):
    """``collections.OrderedDict``."""

    base = OrderedDict


class DefaultDictKind(DictKind):
    """``collections.defaultdict``."""

    def take(self, obj: Any) -> State:
        return [*super().take(obj)[0], obj.default_factory], None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [*super().labels(obj, children[:-1], facts), ("factory",)]

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children[:-1], facts, content)
        if not isinstance(children[-1], Left):
            obj.default_factory = children[-1]


class SetKind(Kind):
    """Atoms by value, objects by identity: their order is that of their addresses in memory."""

    is_ordered = False

    def take(self, obj: set[Any]) -> State:
        atoms = frozenset(member for member in obj if type(member) in ATOMS)
        return [member for member in obj if type(member) not in ATOMS] if len(atoms) < len(obj) else (), atoms

    def unordered(self, children: Sequence[Any], facts: Any) -> int:
        return len(children)

    def difference(self, obj: Any, before: State | None, now: State, renewed: Callable[[Any], bool]) -> Difference:
        children, atoms = before or ((), frozenset())
        held, holds = {*map(id, children)}, {*map(id, now[0])}
        new = [member for member in now[0] if id(member) not in held or renewed(member)]
        gone = [member for member in children if id(member) not in holds or renewed(member)]
        return [*new, *gone], (now[1] - atoms, atoms - now[1]), len(new)

    def put(self, obj: set[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        members = [member for member in children[content:] if not isinstance(member, Left)]
        obj.difference_update(facts[1], members)
        obj.update(facts[0], (member for member in children[:content] if not isinstance(member, Left)))


class FrozenSetKind(SetKind):
    """``frozenset``."""

    in_place = False


class BytesKind(Kind):
    """``bytearray`` and ``array.array``."""

    def take(self, obj: Any) -> State:
        return (), (len(obj), digest(obj))

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return bytes(memoryview(obj).cast("B"))

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: bytes) -> None:
        del obj[:]
        if isinstance(obj, bytearray):
            obj.extend(content)
        else:
            obj.frombytes(content)


class ViewKind(Kind):
    """What only shows other objects: the view of a dict, a descriptor, a bound method.

    Parameters
    ----------
    held : callable
        Returns the objects that are shown.
    remake : callable, optional
        Returns how the view is made again.
    """

    in_place = False

    def __init__(self, held: Callable[[Any], Sequence[Any]], remake: Callable[[Any], Any] | None = None) -> None:
        self._held, self._remake = held, remake

    def take(self, obj: Any) -> State:
        return self._held(obj), None

    def reduce(self, obj: Any) -> Any:
        return self._remake(obj) if self._remake else NotImplemented


def _owner(method: Any) -> Sequence[Any]:
    """Return what ``names.append`` is bound to; a function of a module has nothing."""
    owner = method.__self__
    return () if owner is None or isinstance(owner, types.ModuleType | type) else (owner,)


def _composite(kind: Kind) -> Callable[[type], Kind]:
    def of(cls: type) -> Kind:
        exact = cls.__module__ in ("builtins", "collections", "array")
        return kind if exact or not has_attributes(cls) else Composite(kind, cls)

    return of


def call_method(owner: Any, name: str) -> Any:
    """Return what a method gives: how views are made again."""
    return getattr(owner, name)()


def _view(name: str) -> ViewKind:
    return ViewKind(gc.get_referents, lambda view: (call_method, (gc.get_referents(view)[0], name)))


def _function(method: Any) -> tuple[Any, ...]:
    return (method.__func__,)


def _accessors(made: property) -> tuple[Any, ...]:
    return made.fget, made.fset, made.fdel


LIST = ListKind()

for _name, _kind in {
    "builtins.list": LIST,
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
    f"builtins.{_prefix}_{_name}": _view(_name)
    for _prefix in ("dict", "odict")
    for _name in ("keys", "values", "items")
}
BY_NAME |= {
    "builtins.property": ViewKind(_accessors, lambda made: (property, (*_accessors(made), made.__doc__))),
    "builtins.staticmethod": ViewKind(_function, lambda method: (staticmethod, _function(method))),
    "builtins.classmethod": ViewKind(_function, lambda method: (classmethod, _function(method))),
    "builtins.method": ViewKind(lambda method: (method.__self__, method.__func__)),
    "builtins.builtin_function_or_method": ViewKind(_owner),
    "builtins.method-wrapper": ViewKind(_owner),
    "builtins.mappingproxy": ViewKind(gc.get_referents, lambda proxy: (type(proxy), (gc.get_referents(proxy)[0],))),
    "builtins.memoryview": Stays("a view of memory", quiet=True),
}
