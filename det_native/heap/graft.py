"""Gives objects of this process the state of others that have been made beside them, another process's say."""

from __future__ import annotations

import io
import pickle
import types
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from operator import is_
from typing import Any

from det_native.heap.edges import ATOMS, UNREADABLE, Missing, State, are_equal, are_same_children, kind_of
from det_native.heap.names import ROOTS
from det_native.heap.pickling import short
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack

_PLAIN = frozenset({tuple, list, dict, set, frozenset})
#: The number of the names in a snapshot that has only this root.
_NAMES = 1


def graft(there: Any, value: Any) -> tuple[Any, list[str]]:
    """Give the objects that `there` leads to the state of those that `value` leads to.

    Objects are matched by their address and class. One that matches keeps its identity where its kind can be written,
    so that views, tied weights and optimizers stay what they are; others are replaced in what holds them. `value` is
    used up: its objects are in the result where nothing matches them.

    Returns
    -------
    object
        What stands for `there`: the same object, if that could take the state.
    list of str
        A sentence for each object that could not be set.
    """
    names = {"value": there}
    sentences = graft_names(names, {"value": value})
    return names["value"], sentences


def graft_names(there: MutableMapping[str, Any], values: MutableMapping[str, Any]) -> list[str]:
    """Give several names, and what they share, the state of others, as :func:`graft` does; return its sentences."""
    job = _Graft(there, values)
    job.match()
    job.replace()
    job.write()
    return job.sentences


class _Graft:
    """One transfer from the objects that were made beside (`theirs`) to those that are there (`ours`)."""

    def __init__(self, there: Any, values: Any) -> None:
        self._ours, self._theirs = Snapshot({"": (there, ROOTS)}), Snapshot({"": (values, ROOTS)})
        #: By number of theirs: the number of ours.
        self._matches: dict[int, int] = {_NAMES: _NAMES}
        #: By identity of an object of theirs: what is in its place in the end, where that is not itself.
        self._stands: dict[int, Any] = {}
        self._made_again: list[int] = []
        self.sentences: list[str] = []

    # Which objects are the same.

    def match(self) -> None:
        """Find the objects that have the same address and class, along all ways that lead from pair to pair."""
        ours, theirs, matches = self._ours, self._theirs, self._matches
        # What both sides lead to is itself: classes, functions, modules.
        matches |= {number: ours.numbers[key] for key, number in theirs.numbers.items() if key in ours.numbers}
        taken = {*matches.values()}
        pairs = [_NAMES]
        for number in pairs:  # grows meanwhile
            same = matches[number]
            if ATOMS.issuperset(map(type, theirs.children[number])):
                continue
            for label, child in zip(theirs.labels_of(number), theirs.children[number], strict=True):
                inner, counterpart = theirs.numbers.get(id(child)), ours.child(same, label)
                if type(child) is Missing:
                    self._keep(same, label, child)
                elif inner is None or inner in matches or counterpart is None or counterpart in taken:
                    continue
                elif self._are_alike(counterpart, inner):
                    matches[inner] = counterpart
                    taken.add(counterpart)
                    pairs.append(inner)
        for number, same in matches.items():
            self._stands[id(theirs.objects[number])] = ours.objects[same]

    def _are_alike(self, ours: int, theirs: int) -> bool:
        kinds = self._ours.kinds[ours], self._theirs.kinds[theirs]
        return self._ours.classes[ours] is self._theirs.classes[theirs] and UNREADABLE not in kinds

    def _keep(self, holder: int, label: Any, missing: Missing) -> None:
        """Have what could not travel stand for what is in its place here."""
        ours = self._ours
        children = dict(zip(ours.labels_of(holder), ours.children[holder], strict=True))
        self._stands[id(missing)] = children.get(label, missing)

    # Which of them are replaced.

    def replace(self) -> None:
        """Give up the pairs of which this side's object cannot be written, with those that hold such ones."""
        theirs = self._theirs
        while True:
            count = len(self._matches), len(self._made_again)
            for number in range(len(theirs.objects) - 1, 0, -1):  # what is held mostly comes after its holder
                same = self._matches.get(number)
                if same is not None and not self._can_be_written(number, same):
                    del self._matches[number], self._stands[id(theirs.objects[number])]
                    same = None
                if same is None and id(theirs.objects[number]) not in self._stands:
                    self._point_to_ours(number)
            if count == (len(self._matches), len(self._made_again)):
                return

    def _can_be_written(self, theirs: int, ours: int) -> bool:
        obj, kind = self._ours.objects[ours], self._ours.kinds[ours]
        if obj is self._theirs.objects[theirs] or kind.stays:
            return True
        before, now = (self._ours.children[ours], self._ours.facts[ours]), self._now(theirs)
        return _are_same(before, now) or kind.fits(obj, before, now)

    def _point_to_ours(self, number: int) -> None:
        """Make a new object again if it holds what is replaced by an object of this side, and cannot be written."""
        theirs = self._theirs
        obj, kind, children = theirs.objects[number], theirs.kinds[number], theirs.children[number]
        now = self._mapped(children)
        if not all(map(is_, children, now)):
            before = children, theirs.facts[number]
            if not kind.stays and not kind.fits(obj, before, (now, before[1])):
                self._made_again.append(number)
                self._stands[id(obj)] = Missing("made again")  # until it is

    def _mapped(self, children: Sequence[Any]) -> list[Any]:
        stands = self._stands
        return [stands.get(id(child), child) for child in children]

    def _now(self, theirs: int) -> State:
        """Return the state that the object on this side shall have, or a new one."""
        return self._mapped(self._theirs.children[theirs]), self._theirs.facts[theirs]

    # What they hold.

    def write(self) -> None:
        """Write the objects of this side, and the new ones that hold objects of this side."""
        ours, theirs = self._ours, self._theirs
        self._make_again()
        jobs: list[tuple[Snapshot, int, int]] = []
        for number, obj in enumerate(theirs.objects):
            same = self._matches.get(number)
            if same is not None and ours.objects[same] is not obj:
                jobs.append((ours, same, number))
            elif same is None and number >= _NAMES and id(obj) not in self._stands:
                jobs.append((theirs, number, number))
        # The members of sets and the keys of dicts may compute their hash from their state.
        for job in sorted(jobs, key=lambda job: isinstance(job[0].objects[job[1]], dict | set)):
            self._write(*job)

    def _write(self, side: Snapshot, number: int, theirs: int) -> None:
        obj, kind, before = side.objects[number], side.kinds[number], (side.children[number], side.facts[number])
        source, now = self._theirs.objects[theirs], self._now(theirs)
        if _are_same(before, now):
            return
        if kind.stays:
            if not kind.quiet and side is self._ours:
                self._say(side.path(number), f"is {kind.stays}")
            return
        try:
            children, facts, content = kind.difference(source, before, now, lambda child: False)
            kind.write_state(obj, children, facts, self._with_ours(content))
        except Exception as error:  # noqa: BLE001 (an object of a library may refuse)
            self._say(side.path(number), f"cannot be set ({short(error)})")

    def _say(self, path: str, reason: str) -> None:
        self.sentences.append(f"`{path}` {reason}: it stayed as it was.")

    def _make_again(self) -> None:
        objects = {number: self._theirs.objects[number] for number in self._made_again}
        for obj in objects.values():
            del self._stands[id(obj)]
        for number, obj in (self._copied(objects) if objects else {}).items():
            self._stands[id(objects[number])] = obj

    def _copied(self, objects: dict[int, Any]) -> dict[int, Any]:
        try:
            return run_with_deep_stack(lambda: _copy(objects, self._theirs, self._stands, {*map(id, objects.values())}))
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            if len(objects) > 1:  # each by itself: what they share is made several times
                return {number: copy for one in objects.items() for number, copy in self._copied(dict([one])).items()}
            (number,) = objects
            self.sentences.append(f"`{self._theirs.path(number)}` cannot be made here ({short(error)}).")
            return {}

    def _with_ours(self, content: Any) -> Any:
        """Return what a kind writes beyond children and facts with this side's objects in it."""
        if type(content) not in _PLAIN:
            return content
        return _copy(content, self._theirs, self._stands, set())


def _are_same(before: State, now: State) -> bool:
    return are_same_children(before[0], now[0]) and are_equal(before[1], now[1])


def _copy(value: Any, snapshot: Snapshot, stands: Mapping[int, Any], copied: Collection[int]) -> Any:
    """Return a copy of containers, and of the objects with these identities; all others are what stands for them."""
    stream = io.BytesIO()
    copier = _Copier(stream, snapshot, stands, copied)
    copier.dump(value)
    return _Copies(io.BytesIO(stream.getvalue()), copier.others).load()


class _Copier(pickle.Pickler):
    def __init__(
        self, stream: io.BytesIO, snapshot: Snapshot, stands: Mapping[int, Any], copied: Collection[int]
    ) -> None:
        super().__init__(stream, protocol=5)
        self._snapshot, self._stands, self._copied = snapshot, stands, copied
        self._namespaces: set[int] = set()
        self.others: list[Any] = []

    def persistent_id(self, obj: Any) -> int | None:
        key, cls = id(obj), type(obj)
        is_inner = cls in _PLAIN and key not in self._snapshot.numbers and key not in self._namespaces
        if is_inner or key in self._copied:
            return None
        if cls in ATOMS and cls not in (str, bytes):
            return None
        self.others.append(self._stands.get(key, obj))
        return len(self.others) - 1

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.FunctionType):
            self._namespaces.add(id(obj.__globals__))
        return kind_of(obj).reduce(obj)


class _Copies(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, others: Sequence[Any]) -> None:
        super().__init__(stream)
        self._others = others

    def persistent_load(self, place: int) -> Any:
        return self._others[place]
