"""What a cell did to the names of the notebook: a look after it at those that it reached, against their last look."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from det_native.capture.named_by_text import matching
from det_native.capture.observation.holding import may_be_held_elsewhere, may_hold
from det_native.capture.observation.kinds import Kinds, is_of_det_native
from det_native.capture.observation.looks import Look, look, of_library
from det_native.capture.observation.process import (
    module_attributes,
    process_state,
    what_was_patched,
    what_was_set,
)
from det_native.capture.reads import Reads, reads_of
from det_native.capture.transform import transform

# What a look costs is counted in objects, of which 500 take a millisecond.
_QUICK = 5_000  # around any cell
_PER_SECOND = 25_000  # more for each second that the cell took: 5 % of them
_MOST = 250_000
_FIRST = 25_000  # for all that is there when the first cell is looked at
_HEAD = 200  # objects of a value that are looked at before a cell, too: did a widget or a timer change it?
_HELD = 0.005  # seconds for looking whether values hold what has changed
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
        Names that were changed since the execution before it: by a widget, a timer, a thread. Of those that it
        reaches, as far as their first objects tell; a change of others counts as its own.
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
            bound=(self.bound | later.bound) - later.removed,
            removed=(self.removed | later.removed) - later.bound,
            changed=self.changed | later.changed,
            unclear=self.unclear | later.unclear,
            between=self.between,
            process=self.process | later.process,
            looked_up={**self.looked_up, **later.looked_up},
            sampled=self.sampled | later.sampled,
            made=self.made | later.made,
        )


class Watch:
    """Looks at a namespace from one execution to the next.

    Attributes
    ----------
    looks : dict of str to Look
        What the last look at each name told.
    """

    def __init__(self) -> None:
        self.looks: dict[str, Look] = {}
        self._process: dict[str, Hashable] = {}
        self._modules: dict[str, dict[str, int]] = {}

    def begin(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look before a cell runs: what was changed by no cell?"""
        before = self.looks
        names = _names(namespace, hidden)
        looks = _Looks(namespace, _QUICK if before else _FIRST)
        reach = reached(source, before)
        moved: set[str] = set()
        for name in names:
            known = before.get(name)
            if known is None or not looks.is_same(name, known):
                looks.take(name)
            elif name in reach and known.can_change and looks.begins_otherwise(name, known):
                looks.take(name)
                moved.add(name)
            else:
                looks.now[name] = known
        self.looks = {name: looks.now[name] for name in names}
        self._process, self._modules = process_state(), module_attributes(namespace)
        rebound = {name for name in names if name in before and not looks.is_same(name, before[name])}
        # Threads of libraries change their objects at any time.
        return Effects(between=frozenset(rebound | {name for name in moved if not of_library(namespace[name])}))

    def end(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str, seconds: float = 0.0) -> Effects:
        """Look after a cell has run for so long, or while it runs; what the next call tells is since this one."""
        before = self.looks
        names = _names(namespace, hidden)
        looks = _Looks(namespace, min(_MOST, _QUICK + int(seconds * _PER_SECOND)))
        bound = frozenset(name for name in names if name not in before or not looks.is_same(name, before[name]))
        for name in names:
            if name in bound:
                looks.take(name)
            else:
                looks.now[name] = before[name]
        now = looks.now
        reach = reached(source, {**before, **now})
        known = reach & before.keys() & now.keys() - bound
        touched = sorted(known, key=lambda name: (before[name].cost + before[name].read, name))
        unclear = {name for name in touched if before[name].can_change and not looks.take_again(name, before[name])}
        changed = {name for name in touched if _differ(before[name], now[name])}
        # A value may lie where the one was that the cell has freed.
        again = _bound_by(source) & before.keys() & now.keys() - bound - reach
        changed |= {name for name in again if looks.is_replaced(name, before[name])}
        same = [name for name in names if name not in bound | reach | changed]
        gone = reach & before.keys() & (bound | (before.keys() - now.keys()))  # it may have changed their old values
        self._look_at_holders(looks, same, changed, unclear, gone)
        known_whole = [now[name].closed for name in reach & now.keys()] + [before[name].closed for name in gone]
        if not all(known_whole):  # it may have reached whatever is open, too
            unclear.update(name for name in same if not now[name].closed and not now[name].exact)
        unclear -= changed
        for name in unclear:  # the next look before a cell is for what has changed since
            now[name] = now[name]._replace(head=looks.head(name))
        self.looks = {name: now[name] for name in names}
        set_before, patched_before = self._process, self._modules
        self._process, self._modules = process_state(), module_attributes(namespace)
        process = what_was_set(set_before, self._process, transform(source).source) | what_was_patched(
            patched_before, self._modules, namespace
        )
        return Effects(
            bound=bound,
            removed=frozenset(before.keys() - now.keys()),
            changed=frozenset(changed),
            unclear=frozenset(unclear),
            process=process,
            looked_up={name: now[name].looked_up for name in bound | changed if now[name].looked_up},
            sampled=frozenset(name for name in touched if now[name].full is None),
            made=frozenset(now.keys() - before.keys()),
        )

    def renew(self, namespace: Mapping[str, Any], hidden: Collection[str]) -> Effects:
        """Look again at all names that have changed since the last look, so that no cell has changed them."""
        before, looks = self.looks, _Looks(namespace, _MOST)
        names = _names(namespace, hidden)
        bound = {name for name in names if name not in before or not looks.is_same(name, before[name])}
        for name in names:
            if name in bound or before[name].can_change:
                looks.take(name)
            else:
                looks.now[name] = before[name]
        self.looks = now = looks.now
        changed = {name for name in now.keys() - bound if _differ(before[name], now[name])}
        return Effects(
            bound=frozenset(bound),
            removed=frozenset(before.keys() - now.keys()),
            changed=frozenset(name for name in changed if not is_of_det_native(type(namespace[name]))),
            made=frozenset(now.keys() - before.keys()),
        )

    def fixed(self) -> frozenset[str]:
        """Return names of which the value cannot change."""
        return frozenset(name for name, one in self.looks.items() if not one.can_change)

    def _look_at_holders(
        self, looks: _Looks, names: Iterable[str], changed: set[str], unclear: set[str], gone: set[str]
    ) -> None:
        """Look at names that the cell does not have, and whose values hold an object that it has changed, perhaps."""
        before, now = self.looks, looks.now
        objects: set[int] = set().union(*(now[name].objects | before[name].objects for name in changed | unclear))
        objects.update(*(before[name].objects for name in gone))
        if not objects:
            return
        waiting = []
        for name in names:
            if not objects.isdisjoint(before[name].objects):
                if not looks.take_again(name, before[name]):
                    unclear.add(name)
                elif _differ(before[name], now[name]):
                    changed.add(name)
                elif now[name].full is None:  # a row of an array of which only samples are compared
                    unclear.add(name)
            elif not now[name].closed:
                waiting.append(name)
        if waiting and changed | unclear and may_be_held_elsewhere(changed | unclear, looks.namespace):
            end = time.thread_time() + _HELD
            unclear.update(name for name in waiting if may_hold(looks.namespace.get(name), objects, end))


class _Looks:
    """Looks at several names at one moment, as long as `room` lasts: so many objects, or as many bytes."""

    def __init__(self, namespace: Mapping[str, Any], room: int) -> None:
        self.namespace = namespace
        self.now: dict[str, Look] = {}
        self._room = room
        self._kinds = Kinds(frozenset(id(value) for value in list(namespace.values()) if issubclass(type(value), type)))

    def is_same(self, name: str, known: Look) -> bool:
        """Whether a name has the value that it had."""
        return known.identity == id(self.namespace.get(name))

    @property
    def _objects(self) -> int:
        """How many objects of the next value may be looked at: a few even where arrays have taken all the room."""
        return max(self._room, _HEAD if self._room > -_QUICK else 1)

    def take(self, name: str, known: Look | None = None) -> None:
        """Look at a value, as far as there is room; not much farther than the last time, if all was seen then."""
        limit = self._objects
        if known is not None and known.exact:
            limit = min(limit, _HEAD if known.limit else 2 * known.cost + _HEAD)
        taken = look(self.namespace.get(name), self.namespace, limit, max(self._room, 0), self._kinds)
        self._room -= taken.cost + taken.read
        is_small = taken.cost <= _HEAD and not taken.limit
        self.now[name] = taken._replace(head=taken.fingerprint if is_small else self.head(name))

    def begins_otherwise(self, name: str, known: Look) -> bool:
        """Whether the first objects of a value are others than they were; False where there is no room to look."""
        head = self.head(name)
        return None not in (head, known.head) and head != known.head

    def head(self, name: str) -> int | None:
        """Return the fingerprint of the first objects of a value; None where many values have taken all the room."""
        if self._room < -_QUICK:
            return None
        taken = look(self.namespace.get(name), self.namespace, _HEAD, 0, self._kinds)
        self._room -= taken.cost
        return taken.fingerprint

    def is_replaced(self, name: str, known: Look) -> bool:
        """Whether there is another value at the place in memory where the known one was, as far as there is room."""
        self.take_again(name, known)
        if not _differ(known, self.now[name]) and self.begins_otherwise(name, known):
            self.take(name)
            return True
        return _differ(known, self.now[name])

    def take_again(self, name: str, known: Look) -> bool:
        """Look at the same value again, if there is room for it; return whether an equal look says that it is equal."""
        cost = known.cost + (known.read if known.limit else 0)
        if cost > self._objects or known.limit > self._objects // 2:  # it was cut short, and would be so again
            return False
        self.take(name, known)
        taken = self.now[name]
        if known.full is not None and taken.full is None and not _differ(known, taken):
            self.now[name] = known  # a later look, for which there is more room, compares with all of its arrays
            return False
        return known.exact and taken.exact


def _names(namespace: Mapping[str, Any], hidden: Collection[str]) -> list[str]:
    return [name for name in list(namespace) if name not in hidden and not _OF_THE_SHELL.fullmatch(name)]


def reached(source: str, looks: Mapping[str, Look]) -> set[str]:
    """Return the names that a cell may reach: those it has, and those that functions among them look up."""
    code = _code_of(source)
    if code is None or transform(source).hidden or code.stars:
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


def _bound_by(source: str) -> set[str]:
    """Return the names to which a cell may give another value."""
    code = _code_of(source)
    return code.bound | code.late_bound if code is not None else set()


def _code_of(source: str) -> Reads | None:
    transformed = transform(source)
    try:
        return reads_of(transformed.source) if not transformed.error else None
    except SyntaxError:
        return None


def _differ(before: Look, now: Look) -> bool:
    if before.identity != now.identity:
        return True
    if before.full and now.full and before.full != now.full:
        return True
    if before.limit != now.limit:  # one of them was cut short, or both at other places
        return False
    return None not in (before.fingerprint, now.fingerprint) and before.fingerprint != now.fingerprint
