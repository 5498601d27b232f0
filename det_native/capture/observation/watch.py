"""What a cell did to the names of the notebook: two looks compared, one before it and one after it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from det_native.capture.observation.graph import OBJECTS, Look, look, of_library
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

_OBJECTS_TOGETHER = 15_000
_FEW = 20
_ROOM = 1 << 26  # bytes of one value that are read whole around a cell that reaches it
_ROOM_TOGETHER = 1 << 28
_CLOCK = 50
_SLOW = 0.02  # seconds for one value, or for all that the cell does not reach: then only around cells that reach it
_OF_THE_SHELL = re.compile(r"_+|_i+|_i?\d+|_[dios]h|In|Out|_exit_code|get_ipython|exit|quit|open|__\w+__")


class Effects(NamedTuple):
    """What was seen of one execution.

    Attributes
    ----------
    bound, removed : frozenset of str
        Names that have another value, or none any more.
    changed : frozenset of str
        Names of which the same value is another inside.
    unclear : frozenset of str
        Names that the cell reaches and of which nobody can tell whether they have changed.
    between : frozenset of str
        Names that were changed since the execution before it: by a widget, a timer, a thread.
    kept : mapping of str to frozenset of str
        Names of values that keep one of those that were changed so.
    moved : frozenset of str
        Objects of libraries that have changed so: most often their own threads do that, and it means nothing.
    process : frozenset of str
        What it has set for the whole process.
    looked_up : mapping of str to frozenset of str
        For each name that is not what it was: which names functions in it look up.
    fixed : frozenset of str
        Names of which the value is one that cannot change.
    sampled : frozenset of str
        Names of arrays that are so large that only samples were compared.
    perhaps_set : frozenset of str
        What a library that the cell called has set for the process: it may do so whenever it is used.
    derived : frozenset of str
        Names of classes, and of what has them, from which others were derived: only who asks for those sees it.
    """

    bound: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    unclear: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    kept: Mapping[str, frozenset[str]] = {}
    moved: frozenset[str] = frozenset()
    process: frozenset[str] = frozenset()
    looked_up: Mapping[str, frozenset[str]] = {}
    fixed: frozenset[str] = frozenset()
    sampled: frozenset[str] = frozenset()
    derived: frozenset[str] = frozenset()
    perhaps_set: frozenset[str] = frozenset()

    def then(self, later: Effects) -> Effects:
        """Return what was seen together, of the same execution at two moments."""
        return Effects(
            (self.bound | later.bound) - later.removed,
            (self.removed | later.removed) - later.bound,
            self.changed | later.changed,
            self.unclear | later.unclear,
            self.between,
            self.kept,
            self.moved,
            self.process | later.process,
            {**self.looked_up, **later.looked_up},
            (self.fixed - later.bound) | later.fixed,
            self.sampled | later.sampled,
            self.derived | later.derived,
            self.perhaps_set | later.perhaps_set,
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
        self._slow: dict[str, int] = {}  # identity of the value
        self._process: dict[str, Hashable] = {}
        self._modules: dict[str, dict[str, int]] = {}

    def begin(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look before a cell runs: what was changed by no cell?"""
        before = self.looks
        self._look(namespace, hidden, source)
        self._process, self._modules = process_state(), module_attributes(namespace)
        both = before.keys() & self.looks.keys()
        differ = {name for name in both if _differ(before[name], self.looks[name])}
        if not differ:
            return NOTHING
        moved = {
            name for name in differ if before[name].identity == id(namespace[name]) and of_library(namespace[name])
        }
        differ -= moved
        kept: dict[str, frozenset[str]] = {}
        for name in differ:
            one = self.looks[name]
            if one.identity == before[name].identity:
                inner = {each for each in differ if each != name and self.looks[each].identity in one.objects}
                kept[name] = frozenset(each for each in inner if one.identity not in self.looks[each].objects)
        kept = {name: inner for name, inner in kept.items() if inner}
        return Effects(between=frozenset(differ - kept.keys()), kept=kept, moved=frozenset(moved))

    def end(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look after a cell has run, or while it runs; what the next call tells is since this one."""
        before = self.looks
        self._look(namespace, hidden, source)
        now = self.looks
        bound = frozenset(name for name in now if name not in before or before[name].identity != now[name].identity)
        same = now.keys() - bound
        changed = frozenset(name for name in same if _differ(before[name], now[name]))
        unclear = frozenset(name for name in same - changed if not (before[name].exact and now[name].exact))
        set_before, patched_before = self._process, self._modules
        self._process, self._modules = process_state(), module_attributes(namespace)
        process = what_was_set(set_before, self._process, transform(source).source) | what_was_patched(
            patched_before, self._modules, namespace
        )
        unclear_now = frozenset({*self._touched(unclear, source, before, changed)})
        rest = frozenset(same) - changed - unclear_now
        unclear_now |= self._shared(rest, changed | unclear_now, before, namespace)
        return Effects(
            bound,
            frozenset(before.keys() - now.keys()),
            changed,
            unclear_now,
            process=process,
            looked_up={name: now[name].looked_up for name in bound | changed if now[name].looked_up},
            fixed=frozenset(name for name in bound if now[name].exact and not now[name].objects),
            sampled=frozenset(name for name in same if now[name].full is None),
            derived=frozenset(name for name in same if now[name].subclasses != before[name].subclasses),
        )

    def fixed(self) -> frozenset[str]:
        """Return names of which the value cannot change."""
        return frozenset(name for name, one in self.looks.items() if one.exact and not one.objects)

    def _look(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> None:
        """Look at all names, those first that the cell reaches."""
        before, self.looks = self.looks, {}  # an interrupted look is none
        names = [name for name in list(namespace) if name not in hidden and not _OF_THE_SHELL.fullmatch(name)]
        first = reached(source, before)
        looks: dict[str, Look] = {}
        left, room = _OBJECTS_TOGETHER, _ROOM_TOGETHER
        classes = frozenset(id(value) for value in list(namespace.values()) if issubclass(type(value), type))
        kinds = Kinds(classes)
        begin, of_others = time.thread_time(), 0.0
        for number, name in enumerate(sorted(names, key=lambda one: one not in first)):
            value = namespace.get(name)
            if left > 0 and (self._slow.get(name) != id(value) or name in first):
                allowed = min(_ROOM, room) if name in first else 0
                # A smaller limit would tell another fingerprint.
                found = look(value, namespace, OBJECTS, classes, allowed, kinds)
                left -= len(found.objects)
                room -= allowed if found.full else 0
                self._slow.pop(name, None)
                if not number % _CLOCK or len(found.objects) > _FEW or found.full != 0:  # to ask the clock takes time
                    now = time.thread_time()
                    of_others += now - begin if name not in first else 0
                    if max(of_others, now - begin) > _SLOW:
                        self._slow[name] = id(value)
                    begin = now
            else:
                found = look(value, namespace, _FEW, classes, 0, kinds)
                if not found.closed:  # what is small is looked at in any case: modules, numbers, texts
                    known = before.get(name)
                    same = known is not None and known.identity == id(value)
                    objects = known.objects if known is not None and same else frozenset()
                    looked_up = known.looked_up if known is not None else frozenset()
                    found = Look(id(value), None, False, False, objects, looked_up)
            looks[name] = found
        self.looks = looks

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
            if name in looks:
                waiting.extend(looks[name].looked_up)
    return found


def _differ(before: Look, now: Look) -> bool:
    if before.identity != now.identity:
        return True
    if before.full and now.full and before.full != now.full:
        return True
    return None not in (before.fingerprint, now.fingerprint) and before.fingerprint != now.fingerprint
