"""What a cell did to the names of the notebook: two looks compared, one before it and one after it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from det_native.capture.named_by_text import matching
from det_native.capture.observation.graph import DEEP, OBJECTS, Look, look, of_library
from det_native.capture.observation.holding import may_be_held_elsewhere, may_hold
from det_native.capture.observation.kinds import Kinds
from det_native.capture.observation.process import (
    module_attributes,
    process_state,
    what_was_patched,
    what_was_set,
)
from det_native.capture.reads import reads_of
from det_native.capture.transform import transform

_OBJECTS_TOGETHER = 100_000
_ROOM = 1 << 26  # bytes of one value that are read whole around a cell that reaches it
_ROOM_TOGETHER = 1 << 28
_OF_OTHERS = 0.008  # seconds for all that a cell does not reach
_OF_ONE = _SLOW = 0.02  # seconds for one of them, and for looking whether values hold what has changed
_OF_REACHED = 0.5  # seconds for all that it does
_DEAR = 0.002
_FORGOTTEN = 0.9  # of what a look has cost, at each time that it was too much
_OF_THE_SHELL = re.compile(r"_+|_i+|_i?\d+|_[dios]h|In|Out|_exit_code|get_ipython|exit|quit|open|__\w+__")


class Effects(NamedTuple):
    """What was seen of one execution.

    Attributes
    ----------
    bound, removed : frozenset of str
        Names that have another value, or none any more.
    made : frozenset of str
        Names that were not there before.
    changed : frozenset of str
        Names of which the same value is another inside.
    unclear : frozenset of str
        Names that the cell reaches and of which nobody can tell whether they have changed.
    between : frozenset of str
        Names that were changed since the execution before it: by a widget, a timer, a thread.
    process : frozenset of str
        What it has set for the whole process.
    looked_up : mapping of str to frozenset of str
        For each name that is not what it was: which names functions in it look up.
    sampled : frozenset of str
        Names of arrays that are so large that only samples were compared.
    """

    bound: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    unclear: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    process: frozenset[str] = frozenset()
    looked_up: Mapping[str, frozenset[str]] = {}
    sampled: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()

    def then(self, later: Effects) -> Effects:
        """Return what was seen together, of the same execution at two moments."""
        return Effects(
            (self.bound | later.bound) - later.removed,
            (self.removed | later.removed) - later.bound,
            self.changed | later.changed,
            self.unclear | later.unclear,
            self.between,
            self.process | later.process,
            {**self.looked_up, **later.looked_up},
            self.sampled | later.sampled,
            self.made | later.made,
        )


NOTHING = Effects()


class Watch:
    """Looks at a namespace from one execution to the next.

    Attributes
    ----------
    looks : dict of str to Look
        What the last look at each name told.
    """

    def __init__(self) -> None:
        self.looks: dict[str, Look] = {}
        self._turn = 0
        self._turns: dict[str, int] = {}  # when each was last looked at
        self._costs: dict[str, float] = {}  # seconds, where that was measured
        self._process: dict[str, Hashable] = {}
        self._modules: dict[str, dict[str, int]] = {}

    def begin(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look before a cell runs: what was changed by no cell?"""
        before = self.looks
        self._look(namespace, hidden, source)
        self._process, self._modules = process_state(), module_attributes(namespace)
        both = before.keys() & self.looks.keys()
        others = {name for name in both if differ(before[name], self.looks[name])}
        # Objects of libraries are changed by threads of their own, which means nothing.
        moved = {
            name for name in others if before[name].identity == id(namespace[name]) and of_library(namespace[name])
        }
        return Effects(between=frozenset(others - moved)) if others - moved else NOTHING

    def end(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look after a cell has run, or while it runs; what the next call tells is since this one."""
        before = self.looks
        self._look(namespace, hidden, source)
        now = self.looks
        bound = frozenset(name for name in now if name not in before or before[name].identity != now[name].identity)
        same = now.keys() - bound
        changed = frozenset(name for name in same if differ(before[name], now[name]))
        unclear = frozenset(name for name in same - changed if not (before[name].exact and now[name].exact))
        set_before, patched_before = self._process, self._modules
        self._process, self._modules = process_state(), module_attributes(namespace)
        process = what_was_set(set_before, self._process, transform(source).source) | what_was_patched(
            patched_before, self._modules, namespace
        )
        unclear_now = frozenset({*self._touched(unclear, source, before, changed)})
        rest = frozenset(same) - changed - unclear_now
        unclear_now |= self._shared(rest, changed | unclear_now, before, namespace)
        for name in unclear_now:
            if not now[name].seen:  # what it is inside is not known any more
                now[name] = _unseen(namespace.get(name), now[name])
        return Effects(
            bound,
            frozenset(before.keys() - now.keys()),
            changed,
            unclear_now,
            process=process,
            looked_up={name: now[name].looked_up for name in bound | changed if now[name].looked_up},
            sampled=frozenset(name for name in same if now[name].full is None),
            made=frozenset(now.keys() - before.keys()),
        )

    def fixed(self) -> frozenset[str]:
        """Return names of which the value cannot change."""
        return frozenset(name for name, one in self.looks.items() if one.exact and not one.objects)

    def _look(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> None:
        """Look at all names: those first that the cell reaches, of the others as many as there is time for."""
        before, self.looks = self.looks, {}  # an interrupted look is none
        self._turn += 1
        names = [name for name in list(namespace) if name not in hidden and not _OF_THE_SHELL.fullmatch(name)]
        first = reached(source, before)
        looks: dict[str, Look] = {}
        left, room = _OBJECTS_TOGETHER, _ROOM_TOGETHER
        classes = frozenset(id(value) for value in list(namespace.values()) if issubclass(type(value), type))
        kinds = Kinds(classes)
        begin = time.thread_time()
        for name in [name for name in names if name in first]:
            value = namespace.get(name)
            if left > 0 and time.thread_time() - begin < _OF_REACHED:
                allowed = min(_ROOM, room)
                looks[name] = found = look(value, namespace, DEEP, classes, allowed, kinds)
                left -= len(found.objects)
                room -= allowed if found.full else 0
            else:
                looks[name] = _unseen(value, before.get(name))
        objects = frozenset().union(*(one.objects for one in looks.values()))
        self._others(looks, before, namespace, [name for name in names if name not in first], kinds, objects)
        self.looks = {name: looks[name] for name in names}

    def _others(
        self,
        looks: dict[str, Look],
        before: Mapping[str, Look],
        namespace: Mapping[str, Any],
        names: Iterable[str],
        kinds: Kinds,
        objects: frozenset[int],
    ) -> None:
        """Look at names that the cell does not reach, at those first that were not looked at for longest.

        What is left out counts as it was: only a cell that reaches an object in it can have changed it, and what has
        one of those `objects` is looked at in any case.
        """
        waiting: list[str] = []
        for name in names:
            known, value = before.get(name), namespace.get(name)
            if known is not None and known.identity == id(value) and known.exact and not known.objects:
                looks[name] = known  # it cannot change
            else:
                waiting.append(name)
        waiting.sort(key=lambda name: (self._costs.get(name, 0.0) > _DEAR, self._turns.get(name, 0)))
        begin = now = time.thread_time()
        for number, name in enumerate(waiting):
            known, value = before.get(name), namespace.get(name)
            same = known is not None and known.identity == id(value)
            cost = self._costs.get(name, 0.0)
            self._costs[name] = cost * _FORGOTTEN
            most = _OF_OTHERS if number else _OF_ONE
            shares = known is not None and not objects.isdisjoint(known.objects)
            if known is not None and same and not shares and now - begin + cost > most:
                looks[name] = known._replace(exact=False, seen=False)
                continue
            if now - begin > _OF_REACHED:  # the first look of all
                looks[name] = _unseen(value, known)
                continue
            looks[name] = look(value, namespace, OBJECTS, kinds.classes, 0, kinds)
            self._turns[name] = self._turn
            then, now = now, time.thread_time()
            self._costs[name] = now - then if same else 0.0  # the first look at a value may have loaded something

    def _shared(
        self,
        names: frozenset[str],
        changed: frozenset[str],
        before: Mapping[str, Look],
        namespace: Mapping[str, Any],
    ) -> frozenset[str]:
        """Those of the names that were not seen whole and may hold what has changed: a row of an array, an element."""
        objects: set[int] = set()
        rows: set[int] = set()  # those of values whose large arrays, if there are any, are not the same
        for name in changed:
            objects |= self.looks[name].objects
            if self.looks[name].full != before[name].full or self.looks[name].full == 0:
                rows |= self.looks[name].objects
        if not objects:
            return frozenset()
        sampled = {name for name in names if None in (self.looks[name].full, before[name].full)}
        found = {name for name in sampled if not rows.isdisjoint(self.looks[name].objects)}
        waiting = [name for name in names - found if not (self.looks[name].closed and before[name].closed)]
        if waiting and may_be_held_elsewhere(changed, namespace):
            end = time.thread_time() + _SLOW
            found |= {name for name in waiting if may_hold(namespace.get(name), objects, end)}
        return frozenset(found)

    def _touched(
        self, unclear: frozenset[str], source: str, before: Mapping[str, Look], changed: frozenset[str]
    ) -> Iterable[str]:
        """Those of the names that the cell reaches: by their own name, or through objects that others share."""
        if not unclear:
            return
        by_name = reached(source, {**before, **self.looks})
        objects: set[int] = set()
        is_open = False
        for name in by_name | changed:
            for looks in (before, self.looks):
                if name in looks:
                    objects |= looks[name].objects
                    is_open = is_open or not looks[name].closed
        for name in unclear:
            one = self.looks[name]
            if name in by_name or not objects.isdisjoint(one.objects) or (is_open and not one.closed):
                yield name


def reached(source: str, looks: Mapping[str, Look]) -> set[str]:
    """Return the names that a cell may reach: those it has, and those that functions among them look up."""
    transformed = transform(source)
    try:
        code = reads_of(transformed.source) if not transformed.error else None
    except SyntaxError:
        code = None
    if code is None or transformed.hidden or code.stars:
        return set(looks)
    waiting = [*code.reads]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if "*" in name:
                waiting.extend(matching(name, looks))
            if name in looks:
                waiting.extend(looks[name].looked_up)
    return found


def _unseen(value: Any, known: Look | None) -> Look:
    """What there is to say of a value that was not looked at, and may be another inside."""
    if known is None or known.identity != id(value):
        return Look(id(value), None, False, False, frozenset(), known.looked_up if known else frozenset())
    return known._replace(fingerprint=None, full=None, exact=False)


def differ(before: Look, now: Look) -> bool:
    """Whether two looks tell that a value is another."""
    if before.identity != now.identity:
        return True
    if before.full and now.full and before.full != now.full:
        return True
    if before.limit != now.limit:  # one of them was cut short, or both at other places
        return False
    return None not in (before.fingerprint, now.fingerprint) and before.fingerprint != now.fingerprint
