"""One look at a value: a fingerprint of all objects that can be reached from it.

Nothing of the user's is called, and nothing is kept but numbers. The walk ends at what is not a notebook's state:
modules, library classes and functions, code. What it cannot see into, or what goes beyond its limit, makes the look
inexact: then an equal fingerprint does not mean that nothing has changed.
"""

from __future__ import annotations

import array
import enum
import gc
import itertools
import marshal
import sys
import types
import zlib
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any

from det_native.capture.observation.arrays import walk_array, walk_raw, whole_with
from det_native.capture.observation.kinds import (
    ENDS,
    LOCKS,
    NOT_OF_A_CLASS,
    NUMBERS,
    SMALL,
    TEXTS,
    TOLD_BY_TEXT,
    Kind,
    Kinds,
    attributes_of,
    is_importable,
    is_of_det_native,
    is_own,
    plain_key,
)
from det_native.inspection.adapter import Adapter
from det_native.inspection.parts import HEAP_TYPE, PARTS, names_looked_up
from det_native.inspection.registry import adapter_of, is_derived

#: Bytes that cost as much as one object.
BYTES = 1 << 12
_PLAIN_BYTES = 1 << 9  # the same of the content of containers, which has to be written down first
_LARGE = 1 << 60  # from about here on, other integers have the same hash
_MANY = 64  # numbers or texts in a container that are taken together


def kind_of(kind: type) -> Kind:
    """Return how objects of a class are looked at."""
    if kind in SMALL:
        return Kind(_number)
    if kind in TEXTS:
        return Kind(lambda one: (kind, hash(one)))
    if kind in TOLD_BY_TEXT:
        return Kind(repr if kind is float else str)
    if issubclass(kind, types.ModuleType):
        return Kind(None, looker=Walk._module)
    if issubclass(kind, type):
        return Kind(None, looker=Walk._class)
    if issubclass(kind, (*ENDS, enum.Enum)) or kind in LOCKS:
        return Kind(None, ends=True)
    changeable = kind not in (tuple, frozenset, types.MethodType)
    looker = _LOOKERS.get(kind)
    adapter = None if looker else adapter_of(kind)
    wrapper = "" if adapter is None else adapter.wraps
    if adapter is not None and type(adapter).children is Adapter.children:
        adapter = None  # it is walked through like any other object
    derived = adapter is not None and is_derived(kind)
    return Kind(None, wrapper, changeable=changeable, looker=looker, adapter=adapter, derived=derived)


def _number(one: Any) -> Hashable:
    """Python's hash of -1 is that of -2."""
    return one if type(one) is int and 0 <= one < _LARGE else str(one)


class Walk:
    """A walk over the objects that can be reached from a value.

    Attributes
    ----------
    exact, closed, looked_up
        See :class:`Look`.
    changeable : set of int
    """

    __slots__ = (
        "_met",
        "_next",
        "_tokens",
        "changeable",
        "classes",
        "closed",
        "cut",
        "exact",
        "full",
        "kept",
        "kinds",
        "left",
        "looked_up",
        "namespace",
        "room",
    )

    def __init__(self, namespace: Mapping[str, Any], limit: int, kinds: Kinds, room: int = 0) -> None:
        self.namespace = namespace
        self.kinds = kinds
        self.classes = kinds.classes
        self.room = room * BYTES
        self.full: int | None = 0
        self.left = limit
        self.cut = False  # there are more objects
        self.exact = self.closed = True
        self.changeable: set[int] = set()
        self.looked_up: set[str] = set()
        self.kept = kinds.kept
        self._met: set[int] = set()
        self._tokens: list[Hashable] = []
        self._next: list[Any] = []

    def whole(self, value: Any) -> int:
        """Return the fingerprint of all that can be reached."""
        waiting, tokens, known = self._next, self._tokens, self.kinds.known
        self.go((value,))
        while waiting:
            one = waiting.pop()
            key = id(one)
            tokens.append(key)
            if key in self._met:
                continue
            self._met.add(key)
            self.left -= 1
            kind = type(one)
            how = known[kind]
            if how.changeable:
                self.changeable.add(key)
            if not how.ends:
                self._into(one, kind, how)
            if self.left < 0:
                self.cut = True
                break
        if not self.cut:
            return hash(tuple(tokens))
        self.closed = False
        plain = self._content_of_plain(value)
        self.exact = plain is not None
        return hash(tuple(tokens)) if plain is None else plain

    def _content_of_plain(self, value: Any) -> int | None:
        """Return a number for the content of a long container of nothing but plain data; None where it holds others."""
        if type(value) not in (list, tuple, dict) or not value or self.room < BYTES:
            return None
        some = list(itertools.islice(value.items() if type(value) is dict else value, 50))
        inner = [part for one in some for part in (one if type(one) in (list, tuple) else (one,))]
        if any(hasattr(kind, "__array__") for kind in set(map(type, inner))):
            return None  # all of its numbers would be written down
        try:
            if len(marshal.dumps(some, 2)) * len(value) > self.room // BYTES * _PLAIN_BYTES * len(some):
                return None
            content = marshal.dumps(value, 2)
        except ValueError:
            return None
        self.room -= len(content) // _PLAIN_BYTES * BYTES
        return zlib.crc32(content)

    def _into(self, one: Any, kind: type, how: Kind) -> None:
        waiting = self._next
        begin = len(waiting)
        try:
            if how.looker is not None:
                how.looker(self, one)
            elif how.adapter is None or not self._of_library(one, kind, how.adapter) or how.derived:
                self._instance(one, kind)
        except Exception:
            if not how.changeable and how.adapter is None and how.looker in (Walk._module, Walk._class):
                raise
            # Classes may raise anything when they are looked into.
            self.cannot_see()
            self.go(part for part in gc.get_referents(one) if part is not kind)
        if len(waiting) - begin > 1:
            waiting[begin:] = waiting[begin:][::-1]

    def _of_library(self, one: Any, kind: type, adapter: Adapter) -> bool:
        """Look at an object of a library; the numbers of one that is met for several names are read once."""
        tokens, left, full = self._tokens, self.left, self.full
        known = self.kinds.numbers.get(id(one))
        if known is not None:
            said, changeable, cost, own = known
            tokens.extend(said)
            self.changeable |= changeable
            self.left -= cost
            self.full = whole_with(full, own)
            return True
        begin, waiting, self.full = len(tokens), len(self._next), 0
        before, self.changeable = self.changeable, set()
        exact, self.exact = self.exact, True
        try:
            found = adapter.children(one, self)
        finally:
            seen_whole = self.exact
            self.exact = exact and seen_whole
            changeable, self.changeable = self.changeable, before
            before |= changeable
            own, self.full = self.full, whole_with(full, self.full)
        if found and seen_whole and own is not None and waiting == len(self._next):
            self.kinds.numbers[id(one)] = (tokens[begin:], changeable, left - self.left, own)
        return found

    def say(self, *told: Hashable) -> None:
        """Take something into the fingerprint."""
        self._tokens.extend(told)

    def go(self, parts: Iterable[Any]) -> None:
        """Look at these objects, too. What is small is told at once: there is much of it."""
        tokens, known, met, waiting = self._tokens, self.kinds.known, self._met, self._next
        for part in parts:
            kind = type(part)
            if kind is str:
                tokens.append(~hash(part))
                continue
            how = known.get(kind)
            if how is None:
                how = known[kind] = kind_of(kind)
            if how.told is not None:
                tokens.append(how.told(part))
            elif how.wrapper:
                self.go((getattr(part, how.wrapper),))
            else:
                tokens.append(id(part))
                if id(part) not in met:
                    waiting.append(part)

    def cannot_see(self, what: str = "") -> None:
        """Note that something cannot be seen into."""
        self.exact = False

    def numbers(self, array: Any, bytes_of_each: int = 0) -> None:
        """Look at an array of numpy's, or a number of one."""
        walk_array(self, array)

    def raw(self, content: Any) -> None:
        """Look at a contiguous buffer of bytes."""
        walk_raw(self, content)

    def _bound_method(self, one: Any) -> None:
        if not isinstance(one.__self__, types.ModuleType):
            self.go((one.__self__,))

    def _bytes(self, one: Any) -> None:
        self.left -= memoryview(one).nbytes >> 13
        self.say(zlib.crc32(one))

    def _mapping(self, one: Any) -> None:
        self._all(one.keys())
        self._all(one.values())

    def _all(self, several: Collection[Any]) -> None:
        """Look at the parts of a container; many numbers or texts are taken together."""
        if len(several) >> 6 > self.left:
            self.left = -1
            self.say(len(several))
            return
        parts = list(several)
        if len(parts) > _MANY:
            kinds = set(map(type, parts))
            if kinds <= NUMBERS:
                self.left -= len(parts) >> 6
                self.say(len(parts), zlib.crc32(marshal.dumps(parts, 2)))
                return
            if kinds <= TEXTS:
                self.left -= len(parts) >> 5
                self.say(len(parts), hash(tuple(parts)))
                return
            if kinds <= NUMBERS | TEXTS:
                self.left -= len(parts) >> 5
                self.say(len(parts), zlib.crc32(marshal.dumps(parts, 2)))
                return
        self.say(len(parts))
        room = max(self.left, 0) + 1
        if len(parts) > room:
            self.cut = True
            parts = parts[:room]
        self.go(parts)

    def _set(self, one: Any) -> None:
        """The order of a set says nothing."""
        parts = list(set.__iter__(one) if issubclass(type(one), set) else frozenset.__iter__(one))
        plain = [part for part in parts if type(part) in SMALL or type(part) in TEXTS or type(part) in TOLD_BY_TEXT]
        self.left -= len(plain) >> 5
        self.say(len(parts), hash(frozenset(map(plain_key, plain))))
        self.go(sorted((part for part in parts if plain_key(part) is None), key=id))

    def _function(self, one: Any) -> None:
        if one.__globals__ is self.namespace:
            self.looked_up |= names_looked_up(one.__code__)
            self.say(id(one.__code__))
        elif is_own(one.__module__):
            self.go((sys.modules[one.__module__],))
        elif is_importable(one):
            return
        self.go((one.__defaults__, one.__kwdefaults__, *(one.__closure__ or ())))
        attributes = one.__dict__
        self.go([*attributes, *attributes.values()])

    def _class(self, kind: Any) -> None:
        body = type.__getattribute__(kind, "__dict__")
        items = [(name, one) for name, one in body.items() if name not in NOT_OF_A_CLASS]
        home = body.get("__module__")
        if home != "__main__" and not is_own(home):
            if id(kind) in self.classes and kind.__flags__ & HEAP_TYPE:  # the notebook may have patched it
                self.changeable.add(id(kind))
                self.say(*(hash((name, id(one))) for name, one in items))
            return
        if home != "__main__":
            self.go((sys.modules[home],))
        elif self.namespace is not None and self.namespace.get(name := str(kind.__qualname__)) is kind:
            self.looked_up.add(name)  # what was loaded from a file names it in no cell
        self.changeable.add(id(kind))
        self.go(kind.__bases__)
        if type(kind) is not type:
            self.go((type(kind),))
        for name, one in items:
            self.say(name)
            self.go((one,))

    def _module(self, module: types.ModuleType) -> None:
        """A module that is the user's own file keeps what is the notebook's; of a library's, see ``process``."""
        if is_own(module.__name__):
            self.changeable.add(id(module))
            for name, one in list(vars(module).items()):
                if name[:2] != "__":
                    self.say(name)
                    self.go((one,))

    def _instance(self, one: Any, kind: type) -> None:
        held = self.kinds.instances(kind)
        if held.bases:
            self.go(held.bases)
        for base in held.contents:
            self._content(one, base)
        attributes = attributes_of(one)
        if attributes is not None:
            kept = [
                (name, part)
                for name, part in attributes.items()
                if name not in held.caches and not is_of_det_native(type(part))  # what wraps a model's methods
            ]
            self.go([name for name, _ in kept])
            self.go([part for _, part in kept])
        for name, slot in held.slots:
            try:
                value = slot.__get__(one, kind)
            except AttributeError:  # not set
                continue
            self.say(name)
            self.go((value,))
        if held.hidden or (attributes is None and not held.seen_by_attributes):
            if kind is not object:
                self.cannot_see()
            self.go(part for part in gc.get_referents(one) if part is not attributes and part is not kind)

    def _content(self, one: Any, base: type) -> None:
        if base is dict:
            keys = list((OrderedDict if issubclass(type(one), OrderedDict) else dict).__iter__(one))
            self._all(keys)
            self._all(list(dict.values(one)))
            if issubclass(type(one), defaultdict):
                self.go((one.default_factory,))
        elif base in (set, frozenset):
            self._set(one)
        else:
            self._all(list(base.__iter__(one)))  # type: ignore[attr-defined]


_LOOKERS: dict[type, Callable[[Walk, Any], None]] = {
    list: lambda walk, one: walk._all(one),
    tuple: lambda walk, one: walk._all(one),
    deque: lambda walk, one: walk._all(one),
    dict: Walk._mapping,
    types.MappingProxyType: Walk._mapping,
    set: Walk._set,
    frozenset: Walk._set,
    bytearray: Walk._bytes,
    array.array: Walk._bytes,
    types.FunctionType: Walk._function,
    types.BuiltinFunctionType: Walk._bound_method,
    **dict.fromkeys(PARTS, lambda walk, one: walk.go(part for _, part in PARTS[type(one)](one))),
}
