"""Forward pass over the log: for every execution, which earlier ones made the values that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import zip_longest

from det_native.capture.analysis import Statement
from det_native.capture.argument_changes import call_changes, exposed
from det_native.capture.bindings import ALWAYS_THERE, Binding, import_path, merge
from det_native.capture.events import (
    Access,
    Bind,
    Branch,
    Call,
    Change,
    Code,
    Delete,
    Event,
    Origin,
    Read,
    Star,
    bound_names,
    name_of,
)
from det_native.capture.existence import existence_only
from det_native.capture.flow_library import LibraryFlow
from det_native.capture.own_classes import (
    call_keeps_something,
    derived_classes,
    offered_codes,
    returned_names,
)
from det_native.capture.records import Facts, Flow, Step
from det_native.capture.sharing import (
    is_taken_over,
    reaches_parts,
    with_state_of,
)
from det_native.capture.vocabulary import (
    BINDING_BUILTINS,
    CONTAINER_CHANGES,
    DATA_KINDS,
    DISPLAY_LIBRARIES,
    DRAWING_METHODS,
    GROWING_KINDS,
    WITHOUT_GRADIENTS,
    chain_changes,
    effect_of_chain,
)


def follow(
    steps: Sequence[Step], facts: Facts, cuts: Mapping[str, int], calling: int | None, needed: Iterable[str] = ()
) -> Flow:
    """Go through the executions in order.

    Parameters
    ----------
    steps : sequence of Step
        In the order in which they ran.
    facts : Facts
    cuts : mapping of name to int
        Names whose live value is sent, with the execution after which that value held (-1: from the start).
    calling : int or None
        Index of the execution that makes the call: there, names used inside functions must be found.
    needed : iterable of str
        Names that the call needs besides those that the calling execution reads.
    """
    return _Follower(facts, cuts, calling).run(steps, needed)


class _Follower(LibraryFlow):
    def run(self, steps: Sequence[Step], needed: Iterable[str]) -> Flow:
        for step in steps:
            for name in bound_names(event for statement in step.statements for event in statement.events):
                self.last_binder[name] = step.index
        self._cut(-1)
        for step, following in zip_longest(steps, steps[1:]):
            self._step(step)
            if step.index == self.calling:
                for name in needed:
                    self._read(name, step.last_line or 0, called=True, optional=False, path=(name,))
            if following is not None:
                self._suspect(following)
            self._cut(step.index)
            self.last = step.index
        self.flow.final = self.environment
        return self.flow

    def _cut(self, after: int) -> None:
        for name, position in self.cuts.items():
            if position == after:
                self.environment[name] = Binding(
                    by_value=True, tokens=frozenset({next(self.tokens)}), kind=self.facts.kinds.get(name)
                )

    def _step(self, step: Step) -> None:
        self.step = step
        self.looked_at.clear()
        self.bound = True
        for table in (self.flow.needs, self.flow.missing):
            table[step.index] = {}
        for names in (self.flow.binds, self.flow.changes):
            names[step.index] = set()
        if step.clears:
            self.environment.clear()
        self._forget(step.seen.between, self.last)
        self._forget(step.seen.out_of_sight, step.index)
        self.still = self._seen_still()
        for name in sorted(step.repeated):
            if name in self.environment:
                self._spread(name, self.environment[name], accumulates=False)
        for name in sorted(step.bindings):
            self._set(name, Binding(frozenset({step.index}), tokens=frozenset({next(self.tokens)})))
        for statement in step.statements:
            if step.last_line is not None and statement.first > step.last_line:
                break
            if not step.failed or (step.failed_line is not None and statement.last < step.failed_line):
                self._statement(statement)
                continue
            self._failing(statement)
            if step.failed_line is not None:
                break
        self._seen_changed()

    def _forget(self, names: Iterable[str], after: int) -> None:
        """From here on a value that no cell's text makes is missing; it is sent as it is, if that can be done."""
        for name in sorted(names):
            binding = self.environment.get(name)
            if binding is not None and not binding.by_value:
                del self.environment[name]
                self.bound = True
                self._touched(name)
                self.flow.touched[name] = after

    def _seen_changed(self) -> None:
        """Take up what the cell has changed in a way that its text does not show."""
        index = self.step.index
        for name in sorted(self.step.seen.changed & self.environment.keys()):
            binding = self.environment[name]
            known = (
                binding.definitions | binding.changes | (binding.suspects if name in self.looked_at else frozenset())
            )
            if index not in known:
                binding = replace(binding, suspects=binding.suspects - {index})  # it is more than that now
                self._changed(name, binding, accumulates=False)
                self._spread(name, self.environment[name], accumulates=False)
        self._seen_streams()

    def _statement(self, statement: Statement) -> None:
        self.filled.clear()
        self._events(statement.events)
        if self.filled:
            offered = offered_codes(statement, self.environment, self.codes)
            for name in self.filled & self.environment.keys():
                binding = self.environment[name]
                if binding.kind not in DATA_KINDS and not offered <= binding.codes:
                    self.bound = True
                    self.environment[name] = replace(binding, codes=binding.codes | offered)

    def _failing(self, statement: Statement) -> None:
        """A statement that failed, or that may have: it was done in part."""
        self.suspect = self.step.failed_line is not None
        events = statement.events
        if self.suspect and statement.simple:
            events = tuple(event for event in events if not isinstance(event, Bind | Delete))
        self._event(Branch((events, ()), statement.first))
        self.suspect = False

    def _events(self, events: Iterable[Event]) -> None:
        existence = existence_only(events, self.step.last_line) if self.step.last_line is not None else frozenset()
        passed = self._passed_on(events)
        for event in events:
            if name_of(event) in existence:
                self._exists(event)
            elif isinstance(event, Read) and event.name in passed:
                self._event(replace(event, called=False))
            else:
                for settled in self._settled(event):
                    self._event(settled)

    def _passed_on(self, events: Iterable[Event]) -> frozenset[str]:
        """Names that are given to training calls which were taken over."""
        lines = self.step.taken
        taken = [
            event for event in events if isinstance(event, Call) and is_taken_over(event.callee, event.line, lines)
        ]
        return frozenset(name for event in taken for _, names in event.arguments for name in names)

    def _exists(self, event: Event) -> None:
        binding = self.environment.get(name_of(event))
        if isinstance(event, Read) and binding is not None and not binding.by_value:
            self._need(event.name, Binding(binding.definitions), (event.name,), event.line)
        elif isinstance(event, Read):
            self._event(event)

    def _event(self, event: Event) -> None:
        if not isinstance(event, Read | Access | Change | Call) or self.bound:
            self.visited.clear()
            self.bound = False
        if isinstance(event, Read):
            self._read(event.name, event.line, event.called, event.optional, (event.name,))
        elif isinstance(event, Bind):
            self._bind(event)
        elif isinstance(event, Change):
            self._change(event)
        elif isinstance(event, Access):
            self._accesses(event)
        elif isinstance(event, Call):
            self._call(event)
        elif isinstance(event, Delete):
            self._delete(event)
        elif isinstance(event, Star):
            for name in sorted(self.facts.stars.get((event.module, event.level), frozenset())):
                self._bind(Bind(name, event.line, origin=Origin("import", event.module, name, event.level)))
        else:
            self._branch(event)

    def _delete(self, event: Delete) -> None:
        removed = self.environment.pop(event.name, None)
        if removed is not None:
            # It must be there to be removed, whatever its value.
            self._need(event.name, Binding(removed.definitions, by_value=removed.by_value), (event.name,), event.line)
        if removed is not None and event.name in ALWAYS_THERE:
            self._set(
                event.name, Binding(frozenset({self.step.index}), origin=Origin("import", "builtins", event.name))
            )
        self._touched(event.name)

    def _branch(self, branch: Branch) -> None:
        start, ends = self.environment, []
        self.depth += 1
        for alternative in branch.alternatives:
            self.environment = dict(start)
            self.bound = True
            self._events(alternative)
            ends.append(self.environment)
        self.depth -= 1
        self.environment = merge(ends)
        self.bound = True

    # Reading.

    def _read(self, name: str, line: int, called: bool, optional: bool, path: tuple[str, ...]) -> None:
        binding = self.environment.get(name)
        if binding is None:
            if name not in ALWAYS_THERE:
                certain = not optional and not self.depth and len(path) == 1
                self._miss(name, path, line, certain or name in self.step.seen.out_of_sight)
            return
        self._need(name, binding, path, line)
        if called and binding.kind == "iterator":
            with self._in_doubt_if_failed():
                self._advance(name, binding)
        self._follow(binding.codes, line, called, path)

    def _follow(self, codes: frozenset[int], line: int, called: bool, path: tuple[str, ...]) -> None:
        for number in sorted(codes):
            if (number, called) not in self.visited:
                self.visited.add((number, called))
                self._late(self.codes[number], line, called, path)

    def _is_function(self, name: str) -> bool:
        return name in self.environment and self.environment[name].origin.kind == "def"

    def _late(self, code: Code, line: int, called: bool, path: tuple[str, ...]) -> None:
        """Names that a function looks up when it is called."""
        for inner in sorted(code.reads):
            if inner not in code.optional or inner in self.environment:
                again = called and not (code.is_result and inner in code.only_called and self._is_function(inner))
                self._read(inner, line, again, True, (*path, inner))
                if called and not again:
                    self._follow(self.codes.results(self.environment[inner].codes), line, called, (*path, inner))
        if called:
            self._run(code)

    def _run(self, code: Code) -> None:
        """What a function does to global names, seeds and the process when it is called."""
        surroundings = self._surroundings(code)
        if surroundings is not None and (id(code), surroundings) in self.idle:
            return
        noted = self.noted
        for event in (settled for each in code.outward for settled in self._settled(each)):
            if isinstance(event, Change) and event.name not in code.parameters:
                self._change(event, inside=True)
            elif isinstance(event, Access) and event.name not in code.parameters:
                self._accesses(event)
            elif isinstance(event, Bind):
                before = self.environment.get(event.name)
                self._bind(event)
                self.single -= self.environment[event.name].tokens
                if before is not None:
                    self.environment = merge([self.environment, {event.name: before}])
            elif isinstance(event, Call):
                self._call(event, frozenset(code.parameters), inside=True)
        if surroundings is not None and self.noted == noted:
            self.idle.add((id(code), surroundings))

    # Changing.

    def _change(self, event: Change, inside: bool = False) -> None:
        binding = self.environment.get(event.name)
        if binding is None:
            kind = self.facts.kinds.get(event.name)
            if event.name not in ALWAYS_THERE and (
                event.how != "call" or chain_changes(event.chain, kind, event.in_place)
            ):
                self._touched(event.name)
            return
        taken = not inside and any(event.line <= line <= event.end_line for line in self.step.taken)
        full = import_path(self.environment, (event.name,))
        self._change_returned(event)
        out_of_sight = False
        if event.how == "call":
            self._call_on(event, binding, full)
            if not call_changes(event, binding, taken):
                out_of_sight = not taken and call_keeps_something(event, binding, self.environment, self.arguments)
                if not out_of_sight:
                    return
        if event.how in {"attribute", "item"} and full is not None and full[0] not in DISPLAY_LIBRARIES:
            path = [*full, *(name for _, name in event.chain if name)]
            self._effect(".".join(path))
        if event.how != "call" or event.chain[-1][1] in CONTAINER_CHANGES:
            self.filled |= {event.name} | with_state_of(binding, self.environment, frozenset())
        apart = WITHOUT_GRADIENTS if event.how == "call" and event.chain[-1][1] == "backward" else frozenset()
        with self._in_doubt_if_failed() if out_of_sight else nullcontext():
            parts = reaches_parts(event, binding)
            known = event.how != "call" or event.chain[-1][1] in CONTAINER_CHANGES
            self._spread(event.name, binding, event.accumulates, event.how == "augmented", apart, parts, known)

    def _call_on(self, event: Change, binding: Binding, full: tuple[str, ...] | None) -> None:
        """What a call on a name does besides changing its value: it looks at classes, it sets up a library."""
        for name in derived_classes(event, binding, self.environment):
            self._read(name, event.line, True, True, (event.name, name))
        if full is not None and full[0] not in DISPLAY_LIBRARIES:
            effect = effect_of_chain(full, event.chain)
            if effect is not None:
                self._effect(effect)

    def _change_returned(self, event: Change) -> None:
        """``settings().update(rate=1)`` changes what the function returns."""
        first, rest = event.chain[:1], event.chain[1:]
        if first == (("call", ""),) and rest and (event.how != "call" or chain_changes(rest, None, event.in_place)):
            for name in sorted(returned_names(event.name, self.environment, self.codes)):
                self._spread(name, self.environment[name], accumulates=False)

    def _accesses(self, event: Access) -> None:
        binding = self.environment.get(event.name)
        if binding is None or binding.origin.kind == "import":
            return
        if event.method == "__iter__":
            self._loaded({event.name})
        special = event.method.startswith("__")
        looked = self.known.methods_named if special else self.known.getters_named
        foreign = event.name in self.facts.foreign and self.last_binder.get(event.name) in binding.definitions
        methods = () if foreign else looked(binding, event.method)
        grows = event.method == "__getitem__" and binding.kind in GROWING_KINDS
        if grows or any(self.known.method_changes(self.environment, binding, number) for number in methods):
            with self._in_doubt_if_failed():
                self._spread(event.name, binding, accumulates=False)
        for number in methods:
            if (number, True) not in self.visited:
                self.visited.add((number, True))
                self._late(self.codes[number], event.line, True, (event.name,))

    # Calls.

    def _call(self, event: Call, parameters: frozenset[str] = frozenset(), inside: bool = False) -> None:
        full = event.callee if event.imported else import_path(self.environment, event.callee)
        root = event.callee[0]
        if full is None and root not in self.environment and root in ALWAYS_THERE:
            if root in BINDING_BUILTINS:
                self.noted += 1
                self.flow.dynamic.add(self.step.index)
        elif full is not None:
            self._library(event, full)
            if self._sets_module(full):
                self._change_modules(full[0])
        elif len(event.callee) > 1 and root in self.environment and event.callee[-1] in DRAWING_METHODS:
            self._library(event, DRAWING_METHODS[event.callee[-1]])
        if not inside and is_taken_over(event.callee, event.line, self.step.taken):
            return
        for position, given in event.arguments:
            if full is None and root in self.environment:
                self._loaded(given)
            names = exposed(event, given, self.environment, self._may_be_model)
            codes = self._code_in(names)
            if names and self.arguments.changes(self.environment, event, full, position, given=codes):
                before = {**self.flow.touched, **self.flow.supposed}
                self._change_names(names, parameters)
                if not self.known.changes(self.environment, event, full, position, given=codes):
                    self._supposed(before)
