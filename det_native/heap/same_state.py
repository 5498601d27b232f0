"""Gives objects of one snapshot the state of those at the same addresses of another one."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from det_native.heap.edges import ATOMS, OF_DET_NATIVE, Missing
from det_native.heap.kinds.functions import READS
from det_native.heap.snapshot import Snapshot

#: Stands for all that an object holds, but for the variables that a function reads.
WHOLE = "whole"


def give_state(here: Snapshot, there: Snapshot, only: Mapping[int, Collection[Any]]) -> None:
    """Give some objects the state that those at their addresses have in another snapshot.

    What can be written keeps its place, so all that share it see it. Where another object stands there, or one that
    cannot be written, the holder gets that. An object of a library that refuses stays as it is.

    Parameters
    ----------
    here : Snapshot
        Its objects are changed.
    there : Snapshot
        Its objects are used up: some of them are taken.
    only : mapping of int to collection
        The objects, by their numbers here, with the labels that are to lead to what they lead to there, or `WHOLE`.
    """
    _Transfer(here, there, only).run()


class _Transfer:
    def __init__(self, here: Snapshot, there: Snapshot, only: Mapping[int, Collection[Any]]) -> None:
        self._here, self._there, self._only = here, there, only
        self._matches = _matches(here, there)
        self._objects = {id(obj): number for number, obj in enumerate(there.objects)}
        self._replaced = self._find_replaced()
        #: What stands here for an object of there, by identity.
        self._made: dict[int, Any] = {}
        #: Objects, by number there, that are new here and get what they hold afterwards.
        self._unfilled: list[int] = []

    def run(self) -> None:
        for number, match in self._matches.items():
            if number in self._replaced:
                continue
            labels = {*self._only.get(match, ()), *self._labels_of_replaced(number, match)}
            with suppress(Exception):
                if labels:
                    self._write(number, match, labels)
        while self._unfilled:
            number = self._unfilled.pop()
            there = self._there
            obj, kind, before = (
                there.objects[number],
                there.kinds[number],
                (there.children[number], there.facts[number]),
            )
            with suppress(Exception):
                now = [*map(self._translated, before[0])], before[1]
                kind.write_state(obj, *kind.difference(obj, before, now, lambda child: False))

    def _write(self, number: int, match: int, labels: set[Any]) -> None:
        here, there = self._here, self._there
        kind = here.kinds[match]
        before = here.children[match], here.facts[match]
        children, facts = there.children[number], there.facts[number]
        held = dict(zip(here.labels_of(match), before[0], strict=True)) if labels != {WHOLE} or _reads(facts) else {}
        wanted = dict(zip(there.labels_of(number), children, strict=True)) if held else {}
        if WHOLE not in labels:
            now = (
                [
                    self._translated(wanted[label]) if label in labels and label in wanted else child
                    for label, child in held.items()
                ],
                before[1],
            )
        elif _reads(facts) or _reads(before[1]):
            own = {label: self._translated(child) for label, child in wanted.items() if not _is_read(label)}
            reads = {label: child for label, child in held.items() if _is_read(label)}
            reads |= {label: self._translated(wanted[label]) for label in labels & reads.keys() if label in wanted}
            now = [*own.values(), *reads.values()], (*own, *reads)
        else:
            now = [*map(self._translated, children)], facts
        if kind.is_listed and len(now[0]) > len(before[0]) and Missing in map(type, now[0]):
            raise LookupError("a part of it did not travel")
        kind.write_state(here.objects[match], *kind.difference(there.objects[number], before, now, lambda child: False))

    def _labels_of_replaced(self, number: int, match: int) -> Iterator[Any]:
        """Yield what leads from an object to those that have to be replaced."""
        here, there = self._here, self._there
        children = there.children[number]
        if ATOMS.issuperset(map(type, children)):
            return
        for label, child in zip(there.labels_of(number), children, strict=True):
            inner = None if type(child) in ATOMS else self._objects.get(id(child))
            if inner in self._replaced and (there.kinds[inner].in_place or not there.kinds[inner].stays):
                held = here.child(match, label)
                if held is not None and (held in self._only or self._matches.get(inner) == held):
                    yield label

    def _find_replaced(self) -> set[int]:
        """Return the objects of there that are taken themselves: new ones, and those that cannot be written."""
        there = self._there
        replaced = {number for number in range(there.first, len(there.objects)) if number not in self._matches}
        for number, match in self._matches.items():
            if match in self._only and not there.kinds[number].in_place and not there.kinds[number].stays:
                replaced.add(number)
        again = True
        while again:
            again = False
            identities = {id(there.objects[number]) for number in replaced}
            for number in self._matches:
                kind = there.kinds[number]
                if number in replaced or kind.in_place or kind.stays:
                    continue
                if not identities.isdisjoint(map(id, there.children[number])):
                    replaced.add(number)
                    again = True
        # What lacks something takes nobody's place.
        incomplete = {number for number in replaced if type(there.objects[number]) is Missing}
        found = incomplete
        while found:
            identities = {id(there.objects[number]) for number in found}
            found = {one for one in replaced - incomplete if not identities.isdisjoint(map(id, there.children[one]))}
            incomplete |= found
        return replaced - incomplete

    def _translated(self, child: Any) -> Any:
        if type(child) in ATOMS:
            return child
        number = self._objects.get(id(child))
        if number is None:
            return child
        kind = self._there.kinds[number]
        if kind is OF_DET_NATIVE or kind.stays or number not in self._replaced:
            match = self._matches.get(number)
            return Missing() if match is None else self._here.objects[match]
        if id(child) not in self._made:
            self._made[id(child)] = child
            self._made[id(child)] = self._renewed(number, child)
        return self._made[id(child)]

    def _renewed(self, number: int, obj: Any) -> Any:
        """Return an object that is new here, with what it holds translated, now or later."""
        kind = self._there.kinds[number]
        if isinstance(obj, tuple):
            cls: Any = type(obj)
            return tuple.__new__(cls, map(self._translated, obj))
        if isinstance(obj, types.FunctionType) and obj.__module__ == "__main__":
            reduced = kind.reduce(obj)
            function, (code, _, *parts), state, *_, fill = reduced
            made = function(code, vars_of_program(self._here), *parts)
            fill(made, {name: self._translated(value) for name, value in state.items()})
            return made
        if kind.in_place:
            self._unfilled.append(number)
        return obj


def _is_read(label: Any) -> bool:
    return type(label) is tuple and label[0] == READS


def _reads(facts: Any) -> bool:
    return type(facts) is tuple and any(map(_is_read, facts))


def vars_of_program(snapshot: Snapshot) -> dict[str, Any]:
    """Return the names of the program, which a snapshot has among its roots."""
    names: dict[str, Any] = snapshot.objects[0]["namespace"]
    return names


def _matches(here: Snapshot, there: Snapshot) -> Mapping[int, int]:
    """Return the objects of there that have one here at their address which can take their state."""
    matches: dict[int, int] = {0: 0}
    roots = {label: number for number, label in enumerate(here.objects[0], 1)}
    for label, number in zip(there.objects[0], range(1, there.first), strict=True):
        matches[number] = roots[label]
    for number in range(there.first, len(there.objects)):
        parent = matches.get(there.parents[number])
        match = None if parent is None else here.child(parent, there.label(number))
        if match is None or match < here.first or here.class_name(match) != there.class_name(number):
            continue
        kind, before, now = here.kinds[match], here.children[match], there.children[number]
        # What it holds is matched, too.
        same = before if len(before) == len(now) else now
        state, wanted = (before, here.facts[match]), (same, there.facts[number])
        if not kind.in_place or kind.stays or kind.fits(here.objects[match], state, wanted):
            matches[number] = match
    return matches
