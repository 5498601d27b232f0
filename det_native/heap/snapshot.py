"""All that the notebook's names lead to at one moment."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from det_native.heap import kinds as _kinds  # noqa: F401 (fills the table)
from det_native.heap.edges import ATOMS, VALUE, Kind, Left, Stays, State, full_name, kind_of
from det_native.heap.kinds.process import PROCESS

_SHELL = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "_", "__", "___", "_oh", "_dh", "_ih"})
_FAILED = Stays("an object that cannot be read")


def is_name(name: str) -> bool:
    """Whether a name of the namespace is the user's, not the shell's."""
    return name not in _SHELL and not name.startswith("__") and not (name.startswith("_i") and name[2:].isdigit())


class NamespaceKind(Kind):
    """The notebook's names."""

    def take(self, obj: dict[str, Any]) -> State:
        names = [name for name in obj if is_name(name)]
        return [obj[name] for name in names], names

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return facts

    def put(self, obj: dict[str, Any], children: Sequence[Any], facts: Any, content: Any) -> None:
        for name in content:
            obj.pop(name, None)
        for name, value in zip(facts, children, strict=True):
            if not isinstance(value, Left):
                obj[name] = value


def changed_names(snapshot: Snapshot, replaced: set[int]) -> tuple[list[Any], list[str], list[str]]:
    """Return the names that stand for something else now, their values first, and the names that are gone.

    The other process may have more names: those that this one has not touched stay as they are.
    """
    names = {name: value for name, value in snapshot.objects[1].items() if is_name(name)}
    before = dict(zip(snapshot.facts[1], snapshot.children[1], strict=True))
    new = [
        name
        for name, value in names.items()
        if name not in before or not _same_child(before[name], value) or snapshot.numbers.get(id(value)) in replaced
    ]
    return [names[name] for name in new], new, [name for name in before if name not in names]


class RootsKind(Kind):
    def take(self, obj: dict[str, Any]) -> State:
        return [*obj.values()], (*obj,)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return facts


class Snapshot:
    """Every reachable object with its state; an object is known by the way that led to it first.

    Parameters
    ----------
    namespace : dict
        The notebook's names.
    more : mapping of str to object, optional
        What else is a root: the arguments of a call, the locals of frames between the cell and the call.

    Attributes
    ----------
    objects, kinds, classes, children, facts : list
        By number. Children are held, so that no identity is used twice.
    numbers : dict of int to int
        The number of an object, by its identity.
    """

    def __init__(self, namespace: dict[str, Any], more: Mapping[str, Any] | None = None) -> None:
        roots = {"names": namespace, "process": PROCESS, **(more or {})}
        self.objects: list[Any] = [roots, namespace]
        self.kinds: list[Kind] = [RootsKind(), NamespaceKind()]
        self.classes: list[type] = [dict, dict]
        self.parents: list[int] = [0, 0]
        self.places: list[int] = [0, 0]
        self.children: list[Sequence[Any]] = []
        self.facts: list[Any] = []
        self.numbers: dict[int, int] = {id(roots): 0, id(namespace): 1}
        #: Why objects could not be read, by number.
        self.unread: dict[int, str] = {}
        self._labels: dict[int, dict[Any, int]] = {}
        self._listed: dict[int, Sequence[Any]] = {}
        self._walk()

    def _walk(self) -> None:
        objects, kinds, numbers = self.objects, self.kinds, self.numbers
        parents, places = self.parents, self.places
        number = 0
        while number < len(objects):
            try:
                children, facts = kinds[number].take(objects[number])
            except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
                self.unread[number] = f"{type(error).__name__}: {error}"
                kinds[number], children, facts = _FAILED, (), None
            self.children.append(children)
            self.facts.append(facts)
            if children and not ATOMS.issuperset(map(type, children)):
                for place, child in enumerate(children):
                    if type(child) in ATOMS or id(child) in numbers:
                        continue
                    kind = kind_of(child)
                    if kind is VALUE:
                        continue
                    numbers[id(child)] = len(objects)
                    objects.append(child)
                    kinds.append(kind)
                    self.classes.append(type(child))
                    parents.append(number)
                    places.append(place)
            number += 1

    # Addresses.

    def label(self, number: int) -> Any:
        """Return what leads to an object from the one that it was first found in."""
        parent = self.parents[number]
        return self._labels_of(parent)[self.places[number]]

    def _labels_of(self, number: int) -> Sequence[Any]:
        known = self._listed.get(number)
        if known is None:
            kind, obj = self.kinds[number], self.objects[number]
            known = self._listed[number] = kind.labels(obj, self.children[number], self.facts[number])
        return known

    def child(self, number: int, label: Any) -> int | None:
        """Return the number of what a label leads to; None if there is nothing."""
        known = self._labels.get(number)
        if known is None:
            known = self._labels[number] = {one: place for place, one in enumerate(self._labels_of(number))}
        place = known.get(label)
        return None if place is None else self.numbers.get(id(self.children[number][place]))

    def class_name(self, number: int) -> str:
        """Return the class that an object had, for a check that both processes mean the same."""
        return full_name(self.classes[number])

    def path(self, number: int) -> str:
        """Return how the user would write an object."""
        parts = []
        while number > 1:
            label = self.label(number)
            parts.append(label if isinstance(label, str) and label.isidentifier() else f"[{label!r}]")
            number = self.parents[number]
        return ".".join(reversed(parts)).replace(".[", "[") or "the notebook's names"

    # Later.

    def changes(self) -> dict[int, tuple[Sequence[Any], Any]]:
        """Return the objects whose state is another now, each with that state."""
        found: dict[int, tuple[Sequence[Any], Any]] = {}
        replaced: set[int] = set()
        for number, obj in enumerate(self.objects):
            kind = self.kinds[number]
            now = self._now(number)
            if now is None:
                continue
            found[number] = now
            if not kind.in_place and not kind.stays:
                replaced.add(id(obj))
        while replaced:
            replaced = self._holders_of(replaced, found)
        return found

    def is_same(self, number: int) -> bool:
        """Whether an object holds what it held."""
        return self._now(number) is None

    def _now(self, number: int) -> tuple[Sequence[Any], Any] | None:
        """Return the state of an object if it is another than it was."""
        if self.kinds[number] is _FAILED:
            return None
        try:
            children, facts = self.kinds[number].take(self.objects[number])
        except Exception:  # noqa: BLE001 (an object of a library may raise anything)
            return None
        same = same_children(self.children[number], children) and same_facts(self.facts[number], facts)
        return None if same else (children, facts)

    def _holders_of(self, replaced: set[int], found: dict[int, Any]) -> set[int]:
        again = set()
        for number, kind in enumerate(self.kinds):
            if number in found or number == 0:
                continue
            children = self.children[number]
            if not replaced.isdisjoint(map(id, children)):
                found[number] = children, self.facts[number]
                if not kind.in_place:
                    again.add(id(self.objects[number]))
        return again


def same_children(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether the same objects are held; atoms that are equal are the same."""
    if len(before) != len(now):
        return False
    return all(map(is_, before, now)) or all(map(_same_child, before, now))


def _same_child(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) in ATOMS:
        return bool(one == other) or (one != one and other != other)
    if kind_of(one) is VALUE or isinstance(one, types.MethodType | types.BuiltinMethodType):
        return same_facts(one, other)
    return False


def same_facts(one: Any, other: Any) -> bool:
    """Whether two facts are equal, whatever comparing them gives."""
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001
        return False

