"""Gives objects of this process the state of others that have been made beside them, another process's say."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from operator import is_
from typing import Any

from det_native.heap.copies import ObjectCopy
from det_native.heap.edges import ATOMS, UNREADABLE, Missing, State, are_equal, are_same_children, kind_of
from det_native.heap.kinds.functions import is_read
from det_native.heap.names import ROOTS
from det_native.heap.pickling import short
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack

_PLAIN = frozenset({tuple, list, dict, set, frozenset})
#: Stands for the labels of all that an object holds, but for the variables that a function reads.
WHOLE = "whole"


def graft_names(there: MutableMapping[str, Any], values: MutableMapping[str, Any]) -> list[str]:
    """Give the objects that names lead to, and what they share, the state of those that `values` leads to.

    Objects are matched by their address and class. One that matches keeps its identity where its kind can be written,
    so that views, tied weights and optimizers stay what they are; others are replaced in what holds them. `values` are
    used up: their objects are in the result where nothing matches them.

    Returns
    -------
    list of str
        A sentence for each object that could not be set.
    """
    return graft_snapshot(Snapshot({"": (there, ROOTS)}), Snapshot({"": (values, ROOTS)}))


def graft_snapshot(ours: Snapshot, theirs: Snapshot, only: Mapping[int, Collection[Any]] | None = None) -> list[str]:
    """Give the objects of one snapshot the state of another's, as :func:`graft_names` does.

    Parameters
    ----------
    ours, theirs : Snapshot
        With the same roots.
    only : mapping of int to collection, optional
        The objects of ours that change, by number, with the labels of what they are to take, or :data:`WHOLE`. Others
        change only where they hold one that is replaced.
    """
    job = _Graft(ours, theirs, only)
    job.match()
    job.replace()
    job.write()
    return job.sentences


class _Graft:
    """One transfer from the objects that were made beside (`theirs`) to those that are there (`ours`)."""

    def __init__(self, ours: Snapshot, theirs: Snapshot, only: Mapping[int, Collection[Any]] | None) -> None:
        self._ours, self._theirs, self._only = ours, theirs, only
        #: By number of theirs: the number of ours.
        self._matches: dict[int, int] = {number: number for number in range(theirs.first)}
        #: Of these, those that were given up.
        self._replaced: dict[int, int] = {}
        #: By identity of an object of theirs: what is in its place in the end, where that is not itself.
        self._stands: dict[int, Any] = {}
        #: Identities of objects of theirs that stand for none of ours.
        self._new: set[int] = set()
        self._made_again: list[int] = []
        #: Identities of new objects that lack something.
        self._incomplete: set[int] = set()
        self.sentences: list[str] = []

    # Which objects are the same.

    def match(self) -> None:
        """Find the objects that have the same address and class, along all ways that lead from pair to pair."""
        ours, theirs, matches = self._ours, self._theirs, self._matches
        # What both sides lead to is itself: classes, functions, modules.
        matches |= {number: ours.numbers[key] for key, number in theirs.numbers.items() if key in ours.numbers}
        taken = {*matches.values()}
        pairs = [*range(1, theirs.first)]
        for number in pairs:  # grows meanwhile
            same = matches[number]
            if ATOMS.issuperset(map(type, theirs.children[number])):
                continue
            for label, child in theirs.held(number).items():
                inner = None if type(child) in ATOMS else theirs.numbers.get(id(child))
                if type(child) is Missing:
                    self._keep(same, label, child)
                    continue
                counterpart = None if inner is None or inner in matches else ours.child(same, label)
                if inner is None or counterpart is None or counterpart in taken:
                    continue
                if self._are_alike(counterpart, inner):
                    matches[inner] = counterpart
                    taken.add(counterpart)
                    pairs.append(inner)
        for number, obj in enumerate(theirs.objects):
            if number in matches:
                self._stands[id(obj)] = ours.objects[matches[number]]
            else:
                self._new.add(id(obj))

    def _are_alike(self, ours: int, theirs: int) -> bool:
        kinds = self._ours.kinds[ours], self._theirs.kinds[theirs]
        return self._ours.class_name(ours) == self._theirs.class_name(theirs) and UNREADABLE not in kinds

    def _keep(self, holder: int, label: Any, missing: Missing) -> None:
        """Have what could not travel stand for what is in its place here."""
        self._stands[id(missing)] = self._ours.held(holder).get(label, missing)

    # Which of them are replaced.

    def replace(self) -> None:
        """Give up the pairs of which this side's object cannot be written, with those that hold such ones."""
        theirs = self._theirs
        while True:
            count = len(self._matches), len(self._made_again)
            for number in range(len(theirs.objects) - 1, 0, -1):  # what is held mostly comes after its holder
                same = self._matches.get(number)
                if same is not None and not self._can_be_written(number, same):
                    self._replaced[number] = self._matches.pop(number)
                    del self._stands[id(theirs.objects[number])]
                    self._new.add(id(theirs.objects[number]))
                    same = None
                if same is None and id(theirs.objects[number]) not in self._stands:
                    self._point_to_ours(number)
            if count == (len(self._matches), len(self._made_again)):
                break
        if self._only is not None:
            self._keep_for_incomplete()

    def _keep_for_incomplete(self) -> None:
        """Have what lacks something, as it did not travel whole, take nobody's place."""
        ours, theirs, stands = self._ours, self._theirs, self._stands
        new = [number for number in range(len(theirs.objects)) if number not in self._matches]
        found = [n for n in new if type(theirs.objects[n]) is Missing and id(theirs.objects[n]) not in stands]
        while found:
            lacking = {id(theirs.objects[number]) for number in found}
            self._incomplete |= lacking
            found = [
                number
                for number in new
                if id(theirs.objects[number]) not in self._incomplete
                and not lacking.isdisjoint(map(id, theirs.children[number]))
            ]
        for number in new:
            if id(obj := theirs.objects[number]) in self._incomplete:
                same = self._replaced.get(number)
                stands[id(obj)] = Missing("incomplete") if same is None else ours.objects[same]
        self._made_again = [n for n in self._made_again if id(theirs.objects[n]) not in self._incomplete]

    def _can_be_written(self, theirs: int, ours: int) -> bool:
        obj, kind = self._ours.objects[ours], self._ours.kinds[ours]
        if obj is self._theirs.objects[theirs] or kind.stays:
            return True
        before, now = (self._ours.children[ours], self._ours.facts[ours]), self._now(theirs, ours)
        return _are_same(before, now) or kind.fits(obj, before, now)

    def _point_to_ours(self, number: int) -> None:
        """Make a new object again if it holds what is replaced by an object of this side, and cannot be written.

        So is a function over the names of the other side.
        """
        theirs = self._theirs
        obj, kind, children = theirs.objects[number], theirs.kinds[number], theirs.children[number]
        now, facts = self._mapped(children), theirs.facts[number]
        is_whole = all(map(is_, children, now)) or kind.stays or kind.fits(obj, (children, facts), (now, facts))
        if not is_whole or (type(obj) is types.FunctionType and id(obj.__globals__) in self._stands):
            self._made_again.append(number)
            self._stands[id(obj)] = Missing("made again")  # until it is

    def _mapped(self, children: Sequence[Any]) -> list[Any]:
        stands = self._stands
        return [stands.get(id(child), child) for child in children]

    def _now(self, number: int, same: int | None) -> State:
        """Return the state that the object on this side shall have, or a new one."""
        ours, theirs = self._ours, self._theirs
        children, facts = theirs.children[number], theirs.facts[number]
        if same is None or self._only is None:
            return self._mapped(children), facts
        labels = self._only.get(same, ())
        if WHOLE in labels and not _has_reads(ours, same):
            return self._mapped(children), facts
        before = ours.children[same], ours.facts[same]
        if not labels and self._new.isdisjoint(map(id, children)):
            return before
        wanted = theirs.held(number)
        held = [*zip(ours.labels_of(same), before[0], strict=True)]
        if WHOLE in labels:
            own = [item for item in wanted.items() if not is_read(item[0])]
            held = own + [item for item in held if is_read(item[0])]
        now = [
            wanted[label]
            if label in wanted and (label in labels or self._is_replaced(same, label, wanted[label]))
            else child
            for label, child in held
        ]
        return self._mapped(now), tuple(label for label, _ in held) if WHOLE in labels else before[1]

    def _is_replaced(self, holder: int, label: Any, child: Any) -> bool:
        """Whether a label leads on this side to an object that cannot take the state of the other side's."""
        inner, held = self._theirs.numbers.get(id(child)), self._ours.child(holder, label)
        if inner is None or held is None or id(child) not in self._new or id(child) in self._incomplete:
            return False
        if self._theirs.kinds[inner].stays:
            return False
        return held in (self._only or ()) or self._replaced.get(inner) == held

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
            elif same is None and id(obj) not in self._stands:
                jobs.append((theirs, number, number))
        # The members of sets and the keys of dicts may compute their hash from their state.
        for job in sorted(jobs, key=lambda job: issubclass(type(job[0].objects[job[1]]), dict | set)):
            self._write(*job)

    def _write(self, side: Snapshot, number: int, theirs: int) -> None:
        obj, kind, before = side.objects[number], side.kinds[number], (side.children[number], side.facts[number])
        source, now = self._theirs.objects[theirs], self._now(theirs, number if side is self._ours else None)
        if _are_same(before, now):
            return
        if kind.stays:
            if not kind.quiet and side is self._ours:
                self._say(side.path(number), f"is {kind.stays}")
            return
        try:
            if (
                self._only is not None
                and kind.is_listed
                and len(now[0]) > len(before[0])
                and Missing in map(type, now[0])
            ):
                raise LookupError("a part of it did not travel")
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
            return run_with_deep_stack(lambda: _Copy(self._theirs, self._stands, objects.values()).of(objects))
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
        return _Copy(self._theirs, self._stands, ()).of(content)


def _has_reads(snapshot: Snapshot, number: int) -> bool:
    is_function = type(snapshot.objects[number]) is types.FunctionType
    return is_function and any(map(is_read, snapshot.labels_of(number)))


def _are_same(before: State, now: State) -> bool:
    return are_same_children(before[0], now[0]) and are_equal(before[1], now[1])


class _Copy(ObjectCopy):
    """A copy of containers, and of some objects; of all others what stands for them."""

    def __init__(self, snapshot: Snapshot, stands: Mapping[int, Any], copied: Iterable[Any]) -> None:
        super().__init__()
        self._snapshot, self._stands, self._copied = snapshot, stands, {*map(id, copied)}
        self._namespaces: set[int] = set()

    def persistent_id(self, value: Any) -> Any:
        key, cls = id(value), type(value)
        is_inner = cls in _PLAIN and key not in self._snapshot.numbers and key not in self._namespaces
        if is_inner or key in self._copied or (cls in ATOMS and cls not in (str, bytes)):
            return None
        return self.put(value, self._stands.get(key, value))

    def reducer_override(self, value: Any) -> Any:
        if type(value) is types.FunctionType:
            self._namespaces.add(id(value.__globals__))
        return kind_of(value).reduce(value)
