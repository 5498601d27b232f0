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
    OF_PROCESS,
    Alike,
    Difference,
    Kind,
    Missing,
    ReadMemory,
    SimpleKind,
    State,
    changed_items,
    is_value,
    stable_digest,
)
from det_native.heap.kinds.instances import Composite, with_attributes


def _with_kept(before: Sequence[Any], children: Sequence[Any]) -> list[Any]:
    """Return children, with what was at the place of one that could not travel."""
    return [
        before[place] if type(child) is Missing and place < len(before) else child
        for place, child in enumerate(children)
    ]


class ListKind(Kind):
    """``list``: of one that has only grown the new part travels."""

    is_listed = True

    def read_state(self, obj: list[Any]) -> State:
        return list.copy(obj), None

    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        old = before[0]
        grown = len(old) <= len(now[0]) and all(map(is_, old, now[0]))
        if grown and (ATOMS.issuperset(map(type, old)) or not any(map(renewed, old))):
            return now[0][len(old) :], None, len(old)
        return now[0], None, 0

    def write_state(self, obj: list[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        list.__setitem__(obj, slice(content, None), _with_kept(list.copy(obj)[content:], children))


class DequeKind(Kind):
    """``collections.deque``."""

    is_listed = True

    def read_state(self, obj: deque[Any]) -> State:
        return list(deque.__iter__(obj)), obj.maxlen

    def fits(self, obj: Any, before: State, now: State) -> bool:
        return bool(before[1] == now[1])

    def write_state(self, obj: deque[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        members = _with_kept([*deque.__iter__(obj)], children)
        deque.clear(obj)
        deque.extend(obj, members)


def _pairs(children: Sequence[Any]) -> dict[Any, Any]:
    """Return keys with values, of children that are all keys and then all values."""
    half = len(children) // 2
    return dict(zip(children[:half], children[half:], strict=False))


class DictKind(Kind):
    """Keys and values; keys that are objects are children, too, by their position."""

    is_listed = True

    def __init__(self, base: Any = dict) -> None:
        self._base = base

    def read_state(self, obj: dict[Any, Any]) -> State:
        return [*self._base.keys(obj), *self._base.values(obj)], None

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        half = len(children) // 2
        values = [key if type(key) in ATOMS else ("value", place) for place, key in enumerate(children[:half])]
        return [*(("key", place) for place in range(half)), *values]

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        # The order of keys may come from a set.
        pairs = zip(labels, children, strict=True)
        items = [pair for place, pair in enumerate(pairs) if place >= len(children) // 2 or type(pair[1]) not in ATOMS]
        items.sort(key=lambda pair: repr(pair[0]))
        return [label for label, _ in items], [child for _, child in items], None

    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        old, new = _pairs(before[0]), _pairs(now[0])
        keys = [key for key in old if key in new]
        # Of keys that are objects, and where the order has changed, all travels.
        if not ATOMS.issuperset(map(type, (*old, *new))) or any(map(ne, keys, new)):
            return *now, None
        values = changed_items(old, new, renewed)
        return [*values, *values.values()], None, [key for key in old if key not in new]

    def parts(self, children: Sequence[Any], facts: Any, content: Any) -> Sequence[Any] | None:
        return None if content is None else [*_pairs(children), *content]

    def write_state(self, obj: dict[Any, Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        before = dict(obj)
        if content is None:
            self._base.clear(obj)
        for key in content or ():
            self._base.pop(obj, key, None)
        for key, value in _pairs(children).items():
            if type(value) is Missing:
                value = before.get(key, value)
            if type(key) is not Missing and type(value) is not Missing:
                self._base.__setitem__(obj, key, value)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        if not exact:
            return ""
        # A set: the order of keys may come from one.
        items = _pairs(children).items()
        return stable_digest({(key, value if is_value(value) else ...) for key, value in items if type(key) in ATOMS})


class SetKind(Kind):
    """Atoms by value, objects by identity: their order is that of their addresses in memory."""

    is_ordered = False

    def __init__(self, *, in_place: bool = True) -> None:
        self.in_place = in_place

    def read_state(self, obj: set[Any]) -> State:
        base: Any = set if issubclass(type(obj), set) else frozenset
        members = [*base.__iter__(obj)]  # a class may have an own way
        atoms = frozenset(member for member in members if type(member) in ATOMS)
        return [member for member in members if type(member) not in ATOMS] if len(atoms) < len(members) else (), atoms

    def glance(self, obj: set[Any], read: ReadMemory) -> State:
        children, atoms = self.read_state(obj)
        return children, frozenset(zip(map(type, atoms), atoms, strict=True))  # 1 is not True

    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        children, atoms = before
        held, holds = {*map(id, children)}, {*map(id, now[0])}
        new = [member for member in now[0] if id(member) not in held or renewed(member)]
        gone = [member for member in children if id(member) not in holds or renewed(member)]
        return [*new, *gone], (now[1] - atoms, atoms - now[1]), len(new)

    def parts(self, children: Sequence[Any], facts: Any, content: Any) -> Sequence[Any] | None:
        return ()  # what several add and take away goes together

    def write_state(self, obj: set[Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.difference_update(facts[1], (member for member in children[content:] if type(member) is not Missing))
        obj.update(facts[0], (member for member in children[:content] if type(member) is not Missing))


def _write_bytes(obj: Any, facts: Any, content: bytes) -> None:
    if len(obj) == facts[0]:  # a memoryview may hold it: its length must not change even for a moment
        memoryview(obj).cast("B")[:] = content
        return
    del obj[:]
    (obj.extend if isinstance(obj, bytearray) else obj.frombytes)(content)


def _owner(method: Any) -> Sequence[Any]:
    """Return what ``names.append`` is bound to; a function of a module has nothing."""
    owner = method.__self__
    return () if owner is None or issubclass(type(owner), types.ModuleType | type) else (owner,)


def _view_of_dict(name: str) -> Kind:
    def reduce(view: Any) -> Any:
        (owner,) = gc.get_referents(view)
        return getattr(type(owner), name), (owner,)

    return SimpleKind(held=gc.get_referents, reduce=reduce, listed=True)


def _function(method: Any) -> tuple[Any, ...]:
    return (method.__func__,)


def _accessors(made: property) -> tuple[Any, ...]:
    return made.fget, made.fset, made.fdel


LIST = ListKind()
_BYTES = SimpleKind(
    lambda obj: (len(obj), digest(obj)),
    _write_bytes,
    content=lambda obj: bytes(memoryview(obj).cast("B")),
    glance=lambda obj, read: read(memoryview(obj).cast("B")),
)
_BOUND = SimpleKind(held=_owner, listed=True)

for _name, _kind in {
    "builtins.list": LIST,
    "builtins.tuple": SimpleKind(held=lambda obj: tuple.__getitem__(obj, slice(None)), listed=True),
    "builtins.dict": DictKind(),
    "builtins.set": SetKind(),
    "builtins.frozenset": SetKind(in_place=False),
    "builtins.bytearray": _BYTES,
    "array.array": _BYTES,
    "collections.deque": DequeKind(),
    "collections.OrderedDict": DictKind(OrderedDict),
}.items():
    BY_NAME[_name] = with_attributes(_kind)
for _name in ("keys", "values", "items"):
    BY_NAME[f"builtins.dict_{_name}"] = BY_NAME[f"builtins.odict_{_name}"] = _view_of_dict(_name)
BY_NAME |= {
    "collections.defaultdict": Composite(DictKind()),
    "builtins.property": SimpleKind(
        held=_accessors, reduce=lambda made: (property, (*_accessors(made), made.__doc__)), listed=True
    ),
    "builtins.staticmethod": SimpleKind(
        held=_function, reduce=lambda method: (staticmethod, _function(method)), listed=True
    ),
    "builtins.classmethod": SimpleKind(
        held=_function, reduce=lambda method: (classmethod, _function(method)), listed=True
    ),
    "builtins.method": SimpleKind(held=lambda method: (method.__self__, method.__func__), listed=True),
    "builtins.builtin_function_or_method": _BOUND,
    "builtins.method-wrapper": _BOUND,
    "builtins.mappingproxy": SimpleKind(
        held=gc.get_referents,
        reduce=lambda proxy: (types.MappingProxyType, (gc.get_referents(proxy)[0],)),
        listed=True,
    ),
    "builtins.memoryview": OF_PROCESS,
}
