"""All that some roots lead to at one moment."""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.digests import size_of
from det_native.heap.edges import (
    ATOMS,
    KEPT,
    KIND_OF_CLASS,
    UNREADABLE,
    VALUE,
    Kind,
    State,
    are_equal,
    are_same_children,
    full_name,
    kind_of,
)
from det_native.heap.names import ROOTS
from det_native.heap.ownership import is_users

#: How PyTorch keeps what a user calls ``model.layer.weight``.
_OF_A_MODULE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")
#: Seconds after which an object is not read again: what takes so long would hold up the training each time.
_SLOW_S = 20.0
#: Objects that are compared: a million take 1.8 s and 300 MB. What lies beyond are the records of large data sets.
MOST_OBJECTS = 1_000_000


def as_written(path: str) -> str:
    """Return a way through attributes of libraries as users write it."""
    return _OF_A_MODULE.sub(r".\1", path)


class Snapshot:
    """Every reachable object with its state; its address is the way that led to it first.

    Parameters
    ----------
    roots : mapping of str to (object, Kind)
        In the order in which addresses are to begin with them.
    kept : mapping of int to Kind
        How objects are read whose content somebody else saves, by identity.
    special : mapping of type to Kind
        How objects of some classes are read in this snapshot.
    most_bytes : int, optional
        Arrays with more are not read.
    """

    def __init__(
        self,
        roots: Mapping[str, tuple[Any, Kind]],
        kept: Mapping[int, Kind] | None = None,
        special: Mapping[type, Kind] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        names = {label: root for label, (root, _) in roots.items()}
        # By number. Children are held, so that no identity is used twice.
        self.objects: list[Any] = [names, *names.values()]
        self.kinds: list[Kind] = [ROOTS, *(kind for _, kind in roots.values())]
        self.classes: list[type] = [type(obj) for obj in self.objects]
        #: From which object one was reached first.
        self.parents: list[int] = [0] * len(self.objects)
        #: By identity.
        self.numbers: dict[int, int] = {id(obj): number for number, obj in enumerate(self.objects)}
        self.children: list[Sequence[Any]] = []
        self.facts: list[Any] = []
        self.slow: list[int] = []  # not compared: it takes too long to read them
        self.cut: int | None = None  # the first object of which not all is compared: there are too many
        self._kept, self._most_bytes = dict(kept or {}), most_bytes
        self._by_class = {**KIND_OF_CLASS, **special} if special else KIND_OF_CLASS
        self.first = len(self.objects)
        self._places: list[int] = [0, *range(len(names))]
        self._adding = self.kinds.append, self.classes.append, self.parents.append, self._places.append
        self._labels: dict[int, Sequence[Any]] = {}
        self._found: dict[int, dict[Any, int]] = {}
        self._fingerprints: dict[tuple[int, bool], str] = {}
        collects = gc.isenabled()
        gc.disable()  # it would walk the many new lists again and again
        try:
            self._walk()
        finally:
            if collects:
                gc.enable()

    def _walk(self) -> None:
        objects, kinds, everything = self.objects, self.kinds, self.children
        add_children, add_fact, has_atoms_only = everything.append, self.facts.append, ATOMS.issuperset
        unordered: list[int] = []
        clock = time.monotonic
        now = clock()
        for number, (obj, kind) in enumerate(zip(objects, kinds, strict=False)):  # both grow meanwhile
            try:
                children, fact = kind.read_state(obj)
            except Exception:  # noqa: BLE001 (an object of a library may raise anything)
                kinds[number], children, fact = UNREADABLE, (), None
            before, now = now, clock()
            if now - before > _SLOW_S:
                self.slow.append(number)
                kinds[number], children, fact = UNREADABLE, (), None
            add_children(children)
            add_fact(fact)
            if children and not has_atoms_only(map(type, children)):
                if kind.is_ordered:
                    self._enter(number, children)
                else:
                    unordered.append(number)
            # Another way to an object is better than the one through a set.
            while unordered and number + 1 == len(objects):
                holder = unordered.pop(0)
                self._enter(holder, everything[holder])

    def _enter(self, number: int, children: Sequence[Any]) -> None:
        numbers, objects, by_class, kept = self.numbers, self.objects, self._by_class, self._kept
        most = self._most_bytes
        add_kind, add_class, add_parent, add_place = self._adding
        count = len(objects)
        if count + len(children) > MOST_OBJECTS:
            room = MOST_OBJECTS - count
            if not ATOMS.issuperset(map(type, children[room:])):
                self.cut, children = number if self.cut is None else self.cut, children[:room]
        for place, child in enumerate(children):
            cls = type(child)
            if cls in ATOMS or id(child) in numbers:
                continue
            kind = by_class.get(cls) or kind_of(child)
            if kind is VALUE:
                continue
            if most is not None and kind.is_whole and size_of(child) > most:
                kind = KEPT
            numbers[id(child)] = count
            count += 1
            objects.append(child)
            add_kind(kept.get(id(child), kind) if kept else kind)
            add_class(cls)
            add_parent(number)
            add_place(place)

    # Addresses.

    def label(self, number: int) -> Any:
        """Return what leads to an object from the one that it was first reached from; None if it looks like another."""
        return self.labels_of(self.parents[number])[self._places[number]]

    def child(self, number: int, label: Any) -> int | None:
        """Return the number of what a label leads to; None if there is nothing."""
        places = self._found.get(number)
        if places is None:
            places = self._found[number] = {name: place for place, name in enumerate(self.labels_of(number))}
        place = None if label is None else places.get(label)
        return None if place is None else self.numbers.get(id(self.children[number][place]))

    def labels_of(self, number: int) -> Sequence[Any]:
        """Return what leads from an object to each of its children."""
        labels = self._labels.get(number)
        if labels is None:
            children = self.children[number]
            labels = self.kinds[number].labels(self.objects[number], children, self.facts[number])
            if not self.kinds[number].is_ordered:
                looks = [label or self.appearance(child) for label, child in zip(labels, children, strict=True)]
                counts = Counter(looks)
                labels = [look if counts[look] == 1 else None for look in looks]
            self._labels[number] = labels
        return labels

    def held(self, number: int) -> Mapping[Any, Any]:
        """Return what an object holds, by label."""
        return dict(zip(self.labels_of(number), self.children[number], strict=True))

    def appearance(self, child: Any) -> Any:
        """Return a label for a member of a set: its class and fingerprint."""
        number = self.numbers.get(id(child))
        return None if number is None else (self.class_name(number), self.fingerprint(number, exact=True))

    def class_name(self, number: int) -> str:
        """Return the class that an object had, for a check that both processes mean the same."""
        # Of what stays, the class may differ: tqdm.auto chooses one by whether a notebook shows the bar.
        return self.kinds[number].stays or self.kinds[number].named or full_name(self.classes[number])

    def fingerprint(self, number: int, *, exact: bool) -> str:
        """Return what tells an object's own state, as it was, from another."""
        known = self._fingerprints.get((number, exact))
        if known is None:
            known = self.kinds[number].fingerprint(self.children[number], self.facts[number], exact)
            self._fingerprints[number, exact] = known
        return known

    def path(self, number: int) -> str:
        """Return how the user would write an object."""
        steps: list[str] = []
        while number >= self.first:
            parent = self.parents[number]
            steps.append(self.kinds[parent].step(self.label(number)))
            number = parent
        path = as_written("".join(reversed(steps)).lstrip("."))
        return path or "an object without a name"

    def path_of_part(self, number: int, label: Any) -> str:
        """Return how the user would write what a label of an object leads to."""
        path = self.path(number) if number >= self.first else ""
        return f"{path}{self.kinds[number].step(label)}".lstrip(".")

    def is_private(self, number: int) -> bool:
        """Whether an object lies behind a private attribute, where only a library looks."""
        while number >= self.first:
            parent = self.parents[number]
            if self.kinds[parent].step(self.label(number)).startswith("._") and not is_users(self.classes[parent]):
                return parent >= self.first
            number = parent
        return False

    # Later.

    def changes(self) -> dict[int, State]:
        """Return the objects whose state is another now, or that hold one that is replaced, each with that state."""
        changes: dict[int, State] = {}
        replaced: set[int] = set()
        for number, obj in enumerate(self.objects):
            kind = self.kinds[number]
            try:
                state = kind.read_state(obj)
            except Exception:  # noqa: BLE001 (an object of a library may raise anything)
                continue
            if kind is UNREADABLE or self._is_as_before(number, state):
                continue
            changes[number] = state
            if not kind.in_place and not kind.stays:
                replaced.add(id(obj))
        while replaced:
            replaced = self._add_holders(replaced, changes)
        return changes

    def _is_as_before(self, number: int, state: State) -> bool:
        return are_same_children(self.children[number], state[0]) and are_equal(self.facts[number], state[1])

    def _add_holders(self, replaced: set[int], changes: dict[int, State]) -> set[int]:
        again = set()
        for number, kind in enumerate(self.kinds):
            if number in changes or replaced.isdisjoint(map(id, self.children[number])):
                continue
            changes[number] = self.children[number], self.facts[number]
            if not kind.in_place:
                again.add(id(self.objects[number]))
        return again
