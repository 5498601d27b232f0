"""What one value leads to, as it was at the last look."""

from __future__ import annotations

import gc
import sys
import types
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from det_native.heap.edges import ATOMS, UNSEEN, are_equal, is_same_child, kind_of
from det_native.heap.kinds.functions import global_names
from det_native.heap.look_ways import (
    EACH,
    LISTED,
    LISTS,
    NOTHING,
    ORDERED,
    READ,
    VALUE_ITSELF,
    WAYS,
    WIDTH,
    WITH_CLASS,
    Memory,
    TooLargeError,
    addresses,
    attributes_of,
    is_value,
    read,
    way_of,
)

#: Objects of one value that are looked at, dictionaries of attributes among them.
MOST_OBJECTS = 500_000
#: Values in containers that cost as much as an object to be walked through, and to be compared.
_VALUES, _COMPARED = 16, 64
#: Objects that are compared at once; where they differ, each is looked at.
_PIECE = 1_000
#: Bytes of larger memory in one tree of which all is read, too.
_ROOM = 16 << 20
_BLOCK = 512  # addresses that are compared at once
_HELD = object()  # stands for what is no value


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
        self._first = _Piece(LISTED if way == WITH_CLASS else way)
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
            except TooLargeError:
                return is_same
            except Exception:  # noqa: BLE001 (threads may change what is looked at)
                found.unseen.add(self.root)
                return False
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
        return len(self._addresses) // WIDTH

    def walk(self, objects: Sequence[Any], tree: Tree) -> list[tuple[_Piece, Sequence[Any]]]:
        """Note what objects hold; return those of it that are new."""
        if self._way != WITH_CLASS:
            self._classes = addresses([*map(type, objects)])
        everything: list[Any] = []
        places: dict[int, list[int]] = {WITH_CLASS: [], LISTED: [], ORDERED: [], READ: []}
        has_atoms_only, add_value, way_of_class, start = ATOMS.issuperset, self._values.append, WAYS.get, 0
        listed, attributes = LISTS.get(self._way, gc.get_referents), None
        for obj in objects:
            holder = id(obj)
            if self._way == READ:
                children = self._read(obj, tree)
            else:
                attributes = attributes_of(obj) if self._way == WITH_CLASS else None
                children = listed(obj)
            everything += children
            self._sizes.append(len(children))
            if has_atoms_only(map(type, children)):
                tree.add_values(len(children))
                self._values += children
            else:
                for place, child in enumerate(children, start):
                    way = way_of_class(type(child))
                    if way is None or way == EACH:
                        way = way_of(child)
                    add_value(child if way == VALUE_ITSELF else _HELD)
                    if way > NOTHING and tree.add(child, holder):
                        # Of which class the dictionary of attributes is follows from the object's class.
                        places[WITH_CLASS if child is attributes else way].append(place)
            start += len(children)
        self._addresses = addresses(everything)
        return [(inner, inner.take(everything)) for inner in self._divide(places)]

    def _read(self, obj: Any, tree: Tree) -> list[Any]:
        children, state = read(obj, tree.memory)
        self._states.append(state)
        if type(obj) is types.FunctionType and obj.__globals__.get("__name__") == "__main__":
            tree.names |= global_names(obj.__code__)
        elif issubclass(type(obj), type) and type.__getattribute__(obj, "__module__") == "__main__":
            tree.classes.add((type.__getattribute__(obj, "__qualname__"), id(obj)))
        for address in kind_of(obj).memory(obj) if state[0] is not UNSEEN else ():
            tree.holders.setdefault(address, []).append(id(obj))
        return children

    def compare(self, objects: Sequence[Any], tree: Tree, found: Found, *, is_quick: bool) -> list[Any] | None:
        """Return what the objects hold now, and take note of those that differ; None where other objects are held."""
        if self._classes and addresses([*map(type, objects)]) != self._classes:
            found.changed.update(map(id, objects))
            return None
        if self._way == READ:
            each = self._read_again(objects, found, is_quick=is_quick)
            held = [child for children in each for child in children]
        elif self._way in LISTS:
            held = [child for obj in objects for child in LISTS[self._way](obj)]
        else:
            held = gc.get_referents(*objects)
        if addresses(held) == self._addresses:
            return held
        if self._way != READ:
            each = [*map(LISTS.get(self._way, gc.get_referents), objects)]
        # A thread may have changed them since: what is noted is what is gone on with.
        is_same = self._compare_each(objects, each, tree, found)
        return [child for children in each for child in children] if is_same else None

    def _read_again(self, objects: Sequence[Any], found: Found, *, is_quick: bool) -> list[list[Any]]:
        everything, states = [], self._states
        samples, whole = (Memory(-1),) * 2 if is_quick else (Memory(0), Memory(sys.maxsize))
        for number, obj in enumerate(objects):
            before, sampled = states[number]
            children, (facts, _) = read(obj, samples if sampled else whole)
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
            before = self._addresses[start * WIDTH : (start + size) * WIDTH]
            start += size
            places = _differing(before, addresses(children))
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
            places: dict[int, list[int]] = {LISTED: [], ORDERED: [], READ: []}
            for holder, children, held in grown:
                for child in children:
                    way = way_of(child)
                    if way > NOTHING and id(child) not in held and tree.add(child, holder):
                        places[max(way, LISTED)].append(place_of[id(child)])
            new = self._divide(places)
            tree.walk([(inner, inner.take(everything)) for inner in new])
        self._sizes, self._values = array("L", map(len, now)), values
        self._addresses = addresses(everything)

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
    old, new, size = memoryview(before).cast("P"), memoryview(now).cast("P"), _BLOCK * WIDTH
    blocks = [start for start in range(0, len(now), size) if before[start : start + size] != now[start : start + size]]
    places = (place for start in blocks for place in range(start // WIDTH, min(start // WIDTH + _BLOCK, len(new))))
    return [place for place in places if old[place] != new[place]]
