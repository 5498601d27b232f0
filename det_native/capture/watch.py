"""What a cell did to the names of the notebook: a look before it and one after it, at what their values lead to."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from typing import Any, NamedTuple

from det_native.capture.named_by_text import matching
from det_native.capture.reads import Reads, reads_of
from det_native.capture.side_effects.process import (
    module_attributes,
    process_state,
    what_was_patched,
    what_was_set,
)
from det_native.capture.transform import transform
from det_native.heap.edges import OF_DET_NATIVE, kind_of
from det_native.heap.kinds.instances import AttributesKind
from det_native.heap.look import Look, can_change, is_value
from det_native.heap.ownership import is_users

#: Objects of a value that are looked at before a cell, too: did a widget or a timer change it?
_GLIMPSE = 1_000
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
        For each name that is not what it was: which names functions in it look up, names of attributes among them.
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
    """Looks at a namespace from one execution to the next."""

    def __init__(self) -> None:
        self._look = Look()
        #: Of each name the value, if it is known by that, else its identity: nothing else of the user's is held.
        self._known: dict[str, Any] = {}
        self._roots: dict[str, int] = {}
        self._process: dict[str, Hashable] = {}
        self._modules: dict[str, dict[str, int]] = {}

    def begin(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look before a cell runs: what was changed by no cell?"""
        values = _values(namespace, hidden)
        rebound = self._bound(values) & self._known.keys()
        by_identity = {id(value): value for value in values.values()}
        roots = [self._roots[name] for name in self._reached(source) if name in self._roots]
        found = self._look.glimpse(roots, by_identity, _GLIMPSE)
        moved = self._names_with(found.changed, values) - rebound
        self._note(values, by_identity)
        self._process, self._modules = process_state(), module_attributes(namespace)
        return Effects(between=frozenset(rebound | {name for name in moved if not _may_change_alone(values[name])}))

    def end(self, namespace: Mapping[str, Any], hidden: Collection[str], source: str) -> Effects:
        """Look after a cell has run, or while it runs; what the next call tells is since this one."""
        values = _values(namespace, hidden)
        bound = self._bound(values)
        by_identity = {id(value): value for value in values.values()}
        effects = Effects(
            bound=frozenset(bound),
            removed=frozenset(self._known.keys() - values.keys()),
            made=frozenset(values.keys() - self._known.keys()),
        )
        looked_at: set[str] = set()
        reach = self._reached(source)
        while True:
            roots = [self._roots[name] for name in reach if name in self._roots]
            # A value may lie where the one was that the cell has freed.
            freed = [self._roots[name] for name in _bound_by(source) - looked_at if name in self._roots]
            found = self._look.find([*roots, *freed], by_identity)
            lost = self._look.lost(roots, by_identity)
            changed = self._names_with(found.changed, values) - bound
            effects = effects._replace(
                changed=effects.changed | changed,
                unclear=effects.unclear | self._names_with(found.unseen | lost, values) - bound,
                sampled=effects.sampled | self._names_with(found.sampled, values) & reach - bound,
            )
            self._note(values, by_identity)
            looked_at |= reach | bound
            reach = self._reached(source) - looked_at  # what new functions look up is known now
            if not reach:
                break
        effects = effects._replace(unclear=effects.unclear - effects.changed)
        set_before, patched_before = self._process, self._modules
        self._process, self._modules = process_state(), module_attributes(namespace)
        process = what_was_set(set_before, self._process, transform(source).source)
        looked_up = {name: names for name in bound | effects.changed if (names := self.looked_up(name))}
        return effects._replace(
            process=process | what_was_patched(patched_before, self._modules, namespace), looked_up=looked_up
        )

    def renew(self, namespace: Mapping[str, Any], hidden: Collection[str]) -> Effects:
        """Look again at all names that have changed since the last look, so that no cell has changed them."""
        values = _values(namespace, hidden)
        bound = self._bound(values)
        by_identity = {id(value): value for value in values.values()}
        found = self._look.find(self._roots.values(), by_identity)
        changed = self._names_with(found.changed, values) - bound
        effects = Effects(
            bound=frozenset(bound),
            removed=frozenset(self._known.keys() - values.keys()),
            changed=frozenset(name for name in changed if kind_of(values[name]) is not OF_DET_NATIVE),
            made=frozenset(values.keys() - self._known.keys()),
        )
        self._note(values, by_identity)
        return effects

    def fixed(self) -> frozenset[str]:
        """Return names of which the value cannot change."""
        return frozenset(self._known.keys() - self._roots.keys())

    def looked_up(self, name: str) -> frozenset[str]:
        """Return which names functions in the value of a name look up, and classes in it: no cell may name them."""
        if name not in self._roots:
            return frozenset()
        names, classes = self._look.names_from(self._roots[name])
        return frozenset(names | {own for own, identity in classes if self._roots.get(own) == identity})

    def sharing(self, name: str, namespace: Mapping[str, Any]) -> frozenset[str]:
        """Return names whose values have objects in common with that of another one, classes aside."""
        if name not in self._roots:
            return frozenset()
        classes = [root for other, root in self._roots.items() if isinstance(namespace.get(other), type)]
        own = self._look.reached_from([self._roots[name]]) - self._look.reached_from(classes)
        holders = self._look.holders_of(own)
        return frozenset(other for other, root in self._roots.items() if other != name and root in holders)

    def _bound(self, values: Mapping[str, Any]) -> set[str]:
        """Return the names that have another value than at the last look."""
        known = self._known
        others = object()
        return {
            name
            for name, value in values.items()
            if (known.get(name, others) is not value if is_value(value) else known.get(name) != id(value))
        }

    def _names_with(self, objects: set[int], values: Mapping[str, Any]) -> set[str]:
        """Return the names whose values lead to one of some objects."""
        if not objects:
            return set()
        holders = self._look.holders_of(objects)
        return {name for name, root in self._roots.items() if root in holders and name in values}

    def _note(self, values: Mapping[str, Any], by_identity: Mapping[int, Any]) -> None:
        self._look.renew(by_identity)
        self._known = {name: value if is_value(value) else id(value) for name, value in values.items()}
        self._roots = {name: id(value) for name, value in values.items() if can_change(value)}

    def _reached(self, source: str) -> set[str]:
        """Return the names that a cell may reach: those it has, and those that functions among them look up."""
        code = _code_of(source)
        names = self._known.keys()
        if code is None or transform(source).hidden or code.stars:
            return set(names)
        waiting = [*code.reads]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if "*" in name:
                waiting.extend(set(matching(name, names)) - found)
            elif name not in found:
                found.add(name)
                waiting.extend(self.looked_up(name) - found)
        return found


def _values(namespace: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    names = [name for name in list(namespace) if name not in hidden and not _OF_THE_SHELL.fullmatch(name)]
    return {name: namespace[name] for name in names if name in namespace}


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


def _may_change_alone(value: Any) -> bool:
    """Whether a value is an object of a library's class, and no data: its threads may change it at any time."""
    return isinstance(kind_of(value), AttributesKind) and not is_users(type(value))
