"""What has changed since the last look: a walk of what some values lead to, which is repeated mostly in C.

Nothing of the user's is held from one look to the next but numbers, texts and other values: a look finds the objects
again from where they begin, by the places at which the last one found them. Python's collector lists what thousands of
objects hold at once, and where they hold the same, the list has the same addresses. Only what keeps its content
elsewhere (arrays, tensors), and what has more than counts (functions, classes), is read object by object.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import struct
import sys
import types
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.edges import ATOMS, KIND_OF_CLASS, UNSEEN, VALUE, SimpleKind, are_equal, is_same_child, kind_of
from det_native.heap.kinds.functions import global_names, is_importable
from det_native.heap.ownership import is_users, is_users_module

#: Objects of one value that are looked at, dictionaries of attributes among them.
MOST_OBJECTS = 500_000
#: Values in containers that cost as much as an object to be walked through, and to be compared.
_VALUES, _COMPARED = 16, 64
#: Objects that are compared at once; where they differ, each is looked at.
_PIECE = 2_000
#: Bytes of memory of which all is read in each look, and stretches of what is larger.
_SMALL = 1 << 20
_STRETCHES, _STRETCH = 16, 1 << 14
#: Bytes of larger memory in one tree of which all is read, too.
_ROOM = 16 << 20

# How an object is looked at: known by its value, not at all, by what the collector lists (its class among it or not),
# and the order of keys besides; by its kind; of code and tuples each by itself.
_VALUE, _NOTHING, _WITH_CLASS, _LISTED, _ORDERED, _READ, _EACH = range(7)
_WAYS: dict[type, int] = {}
_VALUES_OF_PYTHON = (types.CodeType, types.GenericAlias, types.UnionType)
_DESCRIPTORS = (
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType),
    type(inspect.Attribute.name),  # the field of a named tuple
)
_HEAP = 1 << 9  # of a class: a class statement has made it
_WIDTH = struct.calcsize("P")
_ITEMS = object.__basicsize__ + _WIDTH  # where a list says where its items are
_BLOCK = 512  # addresses that are compared at once
_HELD = object()  # stands for what is no value


def _addresses(objects: list[Any]) -> bytes:
    """Return the identities of the members of a list, as they are in its memory."""
    where = ctypes.c_void_p.from_address(id(objects) + _ITEMS).value
    return ctypes.string_at(where, len(objects) * _WIDTH) if objects and where else b""


_CHECK: list[Any] = [_WAYS, _HELD]
if _addresses(_CHECK) != struct.pack("2P", *map(id, _CHECK)):  # another Python than that of python.org

    def _addresses(objects: list[Any]) -> bytes:
        return array("Q", map(id, objects)).tobytes()


class _TooLargeError(Exception):
    """Memory is not read in a quick look."""


class Memory:
    """Reads memory: small ones whole, of large ones samples, and all of it while there is room.

    Parameters
    ----------
    room : int
        Bytes of large memory of which all may be read; none is read at all if it is below zero.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.sampled = False  # since it was set to False

    def __call__(self, data: Any) -> Any:
        """Return what tells the bytes of a contiguous buffer from others."""
        size = data.nbytes
        if size <= _SMALL:
            return size, zlib.crc32(data)
        if self.room < 0:
            raise _TooLargeError
        if size <= self.room:
            self.room -= size
            return size, zlib.crc32(data)
        self.sampled = True
        view = data.cast("B")
        starts = range(0, size - _STRETCH + 1, (size - _STRETCH) // (_STRETCHES - 1))
        return size, *(zlib.crc32(view[start : start + _STRETCH]) for start in starts)

    def part(self, data: Any) -> Any:
        """Do so of a buffer that has only some of the bytes that are meant."""
        self.sampled = True
        return self(data)

    def at(self, address: int, size: int) -> Any:
        """Do so of bytes at an address."""
        if not size:
            return ()
        return self(memoryview((ctypes.c_char * size).from_address(address)))


class Found(NamedTuple):
    """What a look finds, by identity.

    Attributes
    ----------
    changed : set of int
        Objects that are not what they were, and memory.
    unseen : set of int
        Objects of which nobody can tell.
    sampled : set of int
        Objects of which only samples were compared.
    """

    changed: set[int]
    unseen: set[int]
    sampled: set[int]


class Look:
    """Objects that some values lead to, by identity, as they were at the last look."""

    def __init__(self) -> None:
        #: By the identity of the value that they begin with.
        self._trees: dict[int, Tree] = {}
        #: The tree of each object.
        self._tree_of: dict[int, Tree] = {}
        #: Trees that are another now; values without a name that others hold.
        self._others: set[Tree] = set()
        self._held: dict[int, Any] = {}

    def enter(self, values: Mapping[int, Any]) -> None:
        """Walk through the values that are not known yet."""
        for identity, value in values.items():
            if identity not in self._tree_of and can_change(value):
                self._trees[identity] = Tree(value, self._tree_of)

    def find(self, roots: Iterable[int], values: Mapping[int, Any]) -> Found:
        """Look again at what some values lead to. :meth:`renew` has to follow.

        Parameters
        ----------
        roots : iterable of int
            Identities of values that were entered.
        values : mapping of int to object
            By identity: all that have a name now.
        """
        found = Found(set(), set(), set())
        self._others = {tree for identity, tree in self._trees.items() if identity not in values}
        gone = set(self._others)
        sought = {tree.root for tree in gone}
        waiting, seen = self._trees_from(roots), set(gone)
        while waiting := (waiting | self._users_of(self._others)) - seen:
            self._others |= {t for t in waiting if not t.find(values[t.root], found, sought=sought, held=self._held)}
            seen |= waiting
        for identity, value in self._held.items():
            self._trees[identity].find(value, found)
        return found

    def _users_of(self, trees: Collection[Tree]) -> set[Tree]:
        """Return the trees that lead to objects of others: where these are others now, they are walked again."""
        return {user for user in self._trees.values() if any(map(user.uses, trees))} if trees else set()

    def glimpse(self, roots: Iterable[int], values: Mapping[int, Any], most: int) -> Found:
        """Look again at so many objects of each value, and at no large memory. :meth:`renew` has to follow."""
        found = Found(set(), set(), set())
        trees = {tree for tree in self._trees_from(roots) if tree.root in values}
        self._others = {tree for tree in trees if not tree.find(values[tree.root], found, most)}
        return found

    def renew(self, values: Mapping[int, Any]) -> None:
        """Walk again through what is another now, and through new values; forget what has no name any more."""
        others = self._others
        users = self._users_of(others)
        while others:
            for tree in others:
                del self._trees[tree.root]
                for obj in tree.parents:
                    del self._tree_of[obj]
            self.enter({tree.root: values[tree.root] for tree in others if tree.root in values})
            others = {tree for tree in users & {*self._trees.values()} if not tree.outer <= self._tree_of.keys()}
        for tree in users:
            tree.used = {self._tree_of[obj].root for obj in tree.outer if obj in self._tree_of}
        self.enter(values)
        self._others, self._held = set(), {}

    def _trees_from(self, roots: Iterable[int]) -> set[Tree]:
        """Return the trees with all objects that values lead to."""
        waiting = {self._tree_of[root] for root in roots if root in self._tree_of}
        trees: set[Tree] = set()
        while waiting:
            trees |= waiting
            used = {root for tree in waiting for root in tree.used}
            waiting = {self._trees[root] for root in used if root in self._trees} - trees
        return trees

    def holders_of(self, objects: Iterable[int]) -> set[int]:
        """Return these objects, and all that lead to them."""
        waiting = set(objects)
        seen = set(waiting)
        while waiting:
            up: set[int] = set()
            for tree in self._trees.values():
                up.update(*map(tree.holders.__getitem__, tree.holders.keys() & waiting))
                up.update(map(tree.parents.__getitem__, tree.parents.keys() & waiting))
            waiting = up - seen
            seen |= waiting
        return seen

    def lost(self, roots: Iterable[int], values: Mapping[int, Any]) -> set[int]:
        """Return objects that were found from values that are gone: nobody has looked at them."""
        gone = [tree for tree in self._trees_from(roots) if tree.root not in values and tree.root not in self._held]
        return set().union(*(tree.parents for tree in gone))

    def reached_from(self, roots: Collection[int]) -> set[int]:
        """Return all objects, and memory, that values lead to."""
        held: dict[int, list[int]] = {}
        for tree in self._trees_from(roots):
            for obj, parent in tree.edges():
                held.setdefault(parent, []).append(obj)
        waiting, seen = set(roots), set(roots)
        while waiting:
            waiting = {obj for holder in waiting for obj in held.get(holder, ())} - seen
            seen |= waiting
        return seen

    def names_from(self, root: int) -> tuple[set[str], set[tuple[str, int]]]:
        """Return the global names that functions of a value look up, and the notebook's classes among what it holds."""
        trees = self._trees_from([root])
        return set().union(*(tree.names for tree in trees)), set().union(*(tree.classes for tree in trees))


class Tree:
    """Objects that one value leads to, but for those that were found from another value before.

    Attributes
    ----------
    root : int
        Identity of the value.
    parents : dict of int to int
        By the identity of an object: from which one it was found; 0 of the value.
    holders : dict of int to list of int
        Which objects lead to one besides, or to memory.
    outer, used : set of int
        Objects of other trees that are among these, and the roots of those trees.
    names : set of str
        Global names that functions in it look up.
    classes : set of (str, int)
        Classes of the notebook in it, by name and identity.
    """

    def __init__(self, value: Any, tree_of: dict[int, Tree]) -> None:
        self.root = id(value)
        self.parents: dict[int, int] = {self.root: 0}
        self.holders: dict[int, list[int]] = {}
        self.outer: set[int] = set()
        self.used: set[int] = set()
        self.names: set[str] = set()
        self.classes: set[tuple[str, int]] = set()
        self.memory = Memory(_ROOM)
        self._tree_of, tree_of[self.root] = tree_of, self
        self._count = 0
        self._is_cut = False
        way = way_of(value)
        self._first = _Piece(_LISTED if way == _WITH_CLASS else way)
        self.walk([(self._first, [value])])

    def walk(self, waiting: list[tuple[_Piece, Sequence[Any]]]) -> None:
        """Walk through what objects lead to."""
        collects = gc.isenabled()
        gc.disable()  # it would walk the many new lists again and again
        try:
            for piece, objects in waiting:
                waiting += piece.walk(objects, self)
        finally:
            if collects:
                gc.enable()

    def add(self, obj: Any, holder: int, values: int = 0) -> bool:
        """Take note that an object leads to another one; return whether that is new."""
        identity = id(obj)
        tree = self._tree_of.get(identity)
        if tree is not None:
            self.holders.setdefault(identity, []).append(holder)
            if tree is not self:
                self.outer.add(identity)
                self.used.add(tree.root)
            return False
        if self._count >= MOST_OBJECTS:
            self._is_cut = True
            return False
        self._count += 1
        self._tree_of[identity], self.parents[identity] = self, holder
        return True

    def knows(self, objects: set[int]) -> set[int]:
        """Return those of some objects that are looked at."""
        return objects & self._tree_of.keys()

    def add_values(self, count: int) -> None:
        """Take note of so many values in containers."""
        self._count += count // _VALUES

    def uses(self, other: Tree) -> bool:
        """Whether an object of another tree is among these."""
        return not other.parents.keys().isdisjoint(self.outer)

    def edges(self) -> Iterator[tuple[int, int]]:
        """Yield each object, and memory, with one that leads to it."""
        yield from self.parents.items()
        for obj, holders in self.holders.items():
            yield from ((obj, holder) for holder in holders)

    def find(
        self,
        value: Any,
        found: Found,
        most: int = sys.maxsize,
        *,
        sought: Collection[int] = (),
        held: dict[int, Any] | None = None,
    ) -> bool:
        """Look again, at so many objects; return False where it has to be walked through anew.

        Of objects that are `sought` those that it leads to are added to `held`.
        """
        is_quick, is_same = most < sys.maxsize, True
        waiting: list[tuple[_Piece, Sequence[Any]]] = [(self._first, [value])]
        while waiting:
            piece, objects = waiting.pop(0 if is_quick else -1)
            most -= len(objects) + piece.count_held() // _COMPARED
            if most < 0:
                return is_same
            try:
                members = piece.compare(objects, self, found, is_quick=is_quick)
            except _TooLargeError:
                return is_same
            if members is None:
                is_same = False
                continue
            waiting += [(inner, inner.take(members)) for inner in piece.inner]
            if sought and held is not None:
                held.update((id(obj), obj) for obj in members if id(obj) in sought)
        if self._is_cut:
            found.unseen.add(self.root)
        return is_same


class _Piece:
    """Some objects that were found in the same others, and what they held.

    Parameters
    ----------
    way : int
        How they are looked at.
    places : sequence of int
        Where they are among what the others hold.
    """

    __slots__ = ("_addresses", "_classes", "_places", "_sizes", "_states", "_values", "_way", "inner", "take")

    def __init__(self, way: int, places: Iterable[int] = (0,)) -> None:
        self._way = way
        self.inner: list[_Piece] = []
        self._move(places)
        self._states: list[tuple[Any, bool]] = []  # of what is read: facts, and whether of samples
        self._classes = self._addresses = b""
        self._sizes = array("L")
        self._values: list[Any] = []  # of what they hold, what is known by its value

    def _move(self, places: Iterable[int]) -> None:
        self._places = tuple(places)
        one = self._places[0]
        #: Returns the objects, from what others hold now.
        self.take = itemgetter(*self._places) if len(self._places) > 1 else itemgetter(slice(one, one + 1))

    def count_held(self) -> int:
        """Return how much the objects held."""
        return len(self._addresses) // _WIDTH

    def walk(self, objects: Sequence[Any], tree: Tree) -> list[tuple[_Piece, Sequence[Any]]]:
        """Note what objects hold; return those of it that are new."""
        if self._way != _WITH_CLASS:
            self._classes = _addresses([*map(type, objects)])
        everything: list[Any] = []
        places: dict[int, list[int]] = {_WITH_CLASS: [], _LISTED: [], _ORDERED: [], _READ: []}
        has_atoms_only, add_value, way_of_class, start = ATOMS.issuperset, self._values.append, _WAYS.get, 0
        listed, attributes = _LISTS.get(self._way, gc.get_referents), None
        for obj in objects:
            holder = id(obj)
            if self._way == _READ:
                children = self._read(obj, tree)
            else:
                attributes = _attributes_of(obj) if self._way == _WITH_CLASS else None
                children = listed(obj)
            everything += children
            self._sizes.append(len(children))
            if has_atoms_only(map(type, children)):
                tree.add_values(len(children))
                self._values += children
            else:
                for place, child in enumerate(children, start):
                    way = way_of_class(type(child))
                    if way is None or way == _EACH:
                        way = way_of(child)
                    add_value(child if way == _VALUE else _HELD)
                    if way > _NOTHING and tree.add(child, holder):
                        # Of which class the dictionary of attributes is follows from the object's class.
                        places[_WITH_CLASS if child is attributes else way].append(place)
            start += len(children)
        self._addresses = _addresses(everything)
        return [(inner, inner.take(everything)) for inner in self._divide(places)]

    def _read(self, obj: Any, tree: Tree) -> list[Any]:
        children, state = _read(obj, tree.memory)
        self._states.append(state)
        if type(obj) is types.FunctionType and obj.__globals__.get("__name__") == "__main__":
            tree.names |= global_names(obj.__code__)
        elif isinstance(obj, type) and type.__getattribute__(obj, "__module__") == "__main__":
            tree.classes.add((type.__getattribute__(obj, "__qualname__"), id(obj)))
        for address in kind_of(obj).memory(obj) if state[0] is not UNSEEN else ():
            tree.holders.setdefault(address, []).append(id(obj))
        return children

    def compare(self, objects: Sequence[Any], tree: Tree, found: Found, *, is_quick: bool) -> list[Any] | None:
        """Return what the objects hold now, and take note of those that differ; None where other objects are held."""
        if self._classes and _addresses([*map(type, objects)]) != self._classes:
            found.changed.update(map(id, objects))
            return None
        if self._way == _READ:
            each = self._read_again(objects, found, is_quick=is_quick)
            held = [child for children in each for child in children]
        elif self._way in _LISTS:
            held = [child for obj in objects for child in _LISTS[self._way](obj)]
        else:
            held = gc.get_referents(*objects)
        if _addresses(held) == self._addresses:
            return held
        if self._way != _READ:
            each = [*map(_LISTS.get(self._way, gc.get_referents), objects)]
        return held if self._compare_each(objects, each, tree, found) else None

    def _read_again(self, objects: Sequence[Any], found: Found, *, is_quick: bool) -> list[list[Any]]:
        everything, states = [], self._states
        samples, whole = (Memory(-1),) * 2 if is_quick else (Memory(0), Memory(sys.maxsize))
        for number, obj in enumerate(objects):
            before, sampled = states[number]
            children, (facts, _) = _read(obj, samples if sampled else whole)
            everything.append(children)
            if facts is UNSEEN:
                found.unseen.add(id(obj))
            elif sampled:
                found.sampled.add(id(obj))
            if not are_equal(before, facts):
                found.changed.update((id(obj), *(kind_of(obj).memory(obj) if facts is not UNSEEN else ())))
                states[number] = facts, sampled
        return everything

    def _compare_each(self, objects: Sequence[Any], now: list[list[Any]], tree: Tree, found: Found) -> bool:
        """Take note of objects that hold something else; return whether these hold all objects that they held."""
        old = memoryview(self._addresses).cast("P")
        start, is_same = 0, True
        values: list[Any] = []
        grown: list[tuple[int, list[Any], set[int]]] = []
        for obj, size, children in zip(objects, self._sizes, now, strict=True):
            known = self._values[start : start + size]
            before = self._addresses[start * _WIDTH : (start + size) * _WIDTH]
            start += size
            places = _differing(before, _addresses(children))
            pairs = [(known[place], children[place]) for place in places or ()]
            if places is None or not all(was is not _HELD and _is_same(was, child) for was, child in pairs):
                found.changed.add(id(obj))
            if places is None or not all(was is not _HELD and is_value(child) for was, child in pairs):
                held = {old[start - size + place] for place, value in enumerate(known) if value is _HELD}
                is_same &= tree.knows(held) <= {*map(id, children)}
                grown.append((id(obj), children, held))
                values += [child if is_value(child) else _HELD for child in children]
                continue
            for place in places:
                known[place] = children[place]
            values += known
        if is_same:
            self._note(now, values, grown, tree)
        return is_same

    def _note(
        self, now: list[list[Any]], values: list[Any], grown: list[tuple[int, list[Any], set[int]]], tree: Tree
    ) -> None:
        """Note what the objects hold now: other values, and further objects; what they held before may have moved."""
        everything = [child for children in now for child in children]
        if grown and (self.inner or _HELD in values):
            old, place_of = memoryview(self._addresses).cast("P"), {id(obj): n for n, obj in enumerate(everything)}
            for inner in self.inner:
                inner._move(place_of[old[place]] for place in inner._places)
            places: dict[int, list[int]] = {_LISTED: [], _ORDERED: [], _READ: []}
            for holder, children, held in grown:
                for child in children:
                    way = way_of(child)
                    if way > _NOTHING and id(child) not in held and tree.add(child, holder):
                        places[max(way, _LISTED)].append(place_of[id(child)])
            new = self._divide(places)
            tree.walk([(inner, inner.take(everything)) for inner in new])
        self._sizes, self._values = array("L", map(len, now)), values
        self._addresses = _addresses(everything)

    def _divide(self, places: Mapping[int, list[int]]) -> list[_Piece]:
        """Add pieces for objects at these places, by how they are looked at; return them."""
        starts = [(way, start) for way, several in places.items() for start in range(0, len(several), _PIECE)]
        new = [_Piece(way, places[way][start : start + _PIECE]) for way, start in starts]
        self.inner += new
        return new


def _is_same(before: Any, now: Any) -> bool:
    """Whether two values are equal."""
    if type(before) is tuple is type(now):
        return len(before) == len(now) and all(map(is_same_child, before, now))
    return is_same_child(before, now)


def _differing(before: bytes, now: bytes) -> list[int] | None:
    """Return the places at which addresses differ; None if there are more or fewer."""
    if len(before) != len(now):
        return None
    if before == now:
        return []
    old, new, size = memoryview(before).cast("P"), memoryview(now).cast("P"), _BLOCK * _WIDTH
    blocks = [start for start in range(0, len(now), size) if before[start : start + size] != now[start : start + size]]
    places = (place for start in blocks for place in range(start // _WIDTH, min(start // _WIDTH + _BLOCK, len(new))))
    return [place for place in places if old[place] != new[place]]


def can_change(value: Any) -> bool:
    """Whether there is anything in a value that can be another one later."""
    return way_of(value) > _NOTHING


def way_of(obj: Any) -> int:
    """Return how an object is looked at."""
    cls = type(obj)
    way = _WAYS.get(cls)
    if way is None:
        way = _WAYS[cls] = _way_of_class(obj, cls)
    return _way_of_each(obj) if way == _EACH else way


def _way_of_class(obj: Any, cls: type) -> int:
    if cls in ATOMS or issubclass(cls, _VALUES_OF_PYTHON):
        return _VALUE
    if cls is tuple or issubclass(cls, type | types.FunctionType | types.ModuleType):
        return _EACH
    kind = kind_of(obj)
    if kind is VALUE and not is_users(cls):
        return _VALUE
    if issubclass(cls, _DESCRIPTORS) or (isinstance(kind, SimpleKind) and kind.is_empty):
        return _NOTHING
    if issubclass(cls, OrderedDict):
        return _ORDERED if kind.is_listed else _READ
    if kind.is_listed or kind is VALUE:
        return _WITH_CLASS if cls.__flags__ & _HEAP else _LISTED
    return _READ


def _way_of_each(obj: Any) -> int:
    """Return how a tuple, a function, a class or a module is looked at: of libraries' only functions made in a call."""
    if type(obj) is tuple:
        return _VALUE if ATOMS.issuperset(map(type, obj)) else _LISTED
    if issubclass(type(obj), types.ModuleType):
        name = object.__getattribute__(obj, "__dict__").get("__name__")
        return _READ if isinstance(name, str) and name != "__main__" and is_users_module(name) else _NOTHING
    if type(obj) is types.FunctionType:
        return _READ if is_users(obj) or ("<locals>" in obj.__qualname__ and not is_importable(obj)) else _NOTHING
    module = type.__getattribute__(obj, "__module__")
    return _READ if isinstance(module, str) and is_users_module(module) else _NOTHING


def is_value(obj: Any) -> bool:
    """Whether an object is known by its value alone; such a one is held from one look to the next."""
    return way_of(obj) == _VALUE


def _with_order(obj: OrderedDict[Any, Any]) -> list[Any]:
    return [*gc.get_referents(obj), *OrderedDict.__iter__(obj)]


def _with_attributes(obj: Any) -> list[Any]:
    return [*gc.get_referents(obj), _attributes_of(obj)]


#: What else than the collector lists, of an object that is looked at in one way.
_LISTS: dict[int, Callable[[Any], list[Any]]] = {_ORDERED: _with_order}
if sys.version_info >= (3, 13):  # an object's attributes are listed, and not the dictionary that has their names
    _LISTS[_WITH_CLASS] = _with_attributes


def _attributes_of(obj: Any) -> dict[str, Any] | None:
    """Return the dictionary of attributes, which an object may have only from when somebody asks for it."""
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def _read(obj: Any, memory: Memory) -> tuple[list[Any], tuple[Any, bool]]:
    """Return what an object holds, its facts, and whether these are of samples."""
    kind = KIND_OF_CLASS.get(type(obj)) or kind_of(obj)
    memory.sampled = False
    try:
        children, facts = kind.glance(obj, memory)
        if memory.sampled and memory.room > 0:  # of several arrays all are read in the same way each time
            children, facts = kind.glance(obj, Memory(0))
    except _TooLargeError:
        raise
    except Exception:  # noqa: BLE001 (an object of a library may raise anything)
        return gc.get_referents(obj), (UNSEEN, False)
    return [*children] if kind.is_ordered else sorted(children, key=id), (facts, memory.sampled)
