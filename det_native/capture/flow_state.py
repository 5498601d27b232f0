"""What is known at one point of the log while it is followed, and how a change spreads to what shares state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from det_native.capture.argument_changes import ArgumentChanges
from det_native.capture.bindings import Binding, CodeRegistry, Environment
from det_native.capture.events import Code
from det_native.capture.records import Facts, Flow, Missing, Need, Step
from det_native.capture.sharing import with_state_of
from det_native.capture.vocabulary import DATA_KINDS


class FlowState:
    """The environment, the step under way, and the result as far as it has come.

    Parameters
    ----------
    facts, cuts, calling
        See ``flow.follow``.
    """

    def __init__(self, facts: Facts, cuts: Mapping[str, int], calling: int | None) -> None:
        self.facts, self.cuts, self.calling = facts, cuts, calling
        self.flow = Flow()
        self.environment: Environment = {}
        self.codes = CodeRegistry()
        self.arguments = ArgumentChanges(self.codes, facts.local_modules)
        self.known = ArgumentChanges(self.codes, ())
        self.tokens = count()
        self.last_binder: dict[str, int] = {}
        self.step = Step(-1, ())
        self.last = -1  # index of the step before
        self.visited: set[tuple[int, bool]] = set()
        self.single: set[int] = set()  # tokens that stand for one object: not those of what a loop or a function binds
        self.still: frozenset[int] = frozenset()  # tokens of what the step was seen to leave as it was, all of it
        self.filled: set[str] = set()  # names of what the statement under way has put something into
        self.suspect = False
        self.looking = False
        self.looked_at: set[str] = set()  # names of what a cell that failed may have changed by looking at it
        self.bound = False  # since the codes in `visited` were followed
        self.depth = 0
        self.noted = 0  # grows with all that is found but needs
        self.idle: set[tuple[int, Hashable]] = set()  # code that does nothing, and where

    def _need(self, name: str, binding: Binding, path: tuple[str, ...], line: int) -> None:
        makers = (binding.definitions | binding.changes) - {self.step.index}
        again = binding.again - {self.step.index}
        if again != binding.again:
            makers -= binding.definitions  # it imports the name itself
        if makers or binding.by_value or len(binding.updates) > 1:
            loop = binding.origin.kind == "loop"
            imported = again if len(makers) == 1 and not binding.changes else frozenset()
            need = Need(name, makers, binding.updates, path, binding.by_value, loop, line, binding.suspects, imported)
            self.flow.needs[self.step.index].setdefault((name, makers), need)

    def _miss(self, name: str, path: tuple[str, ...], line: int, certain: bool) -> None:
        table = self.flow.missing[self.step.index]
        if name not in table or (certain and not table[name].certain):
            table[name] = Missing(name, path, line, certain)

    def _effect(self, what: str) -> None:
        self.noted += 1
        self.flow.effects.setdefault(self.step.index, []).append(what)

    def _surroundings(self, code: Code) -> Hashable:
        """Return what decides on what a function does, None if it may be anything: it reaches more than libraries."""
        reached = [self.environment.get(name) for name in code.reached]
        if any(binding is not None and binding.origin.kind != "import" for binding in reached):
            return None
        known = [*reached, *(self.environment.get(name) for name in code.called)]
        return tuple((binding.origin, binding.kind) if binding is not None else None for binding in known)

    def _touched(self, name: str) -> None:
        self.noted += 1
        self.flow.touched[name] = self.step.index
        self.flow.supposed.pop(name, None)

    def _set(self, name: str, binding: Binding) -> None:
        self.environment[name] = binding
        self.bound = True
        self._touched(name)
        self.flow.binds[self.step.index].add(name)

    def _spread(
        self,
        name: str,
        binding: Binding,
        accumulates: bool,
        augmented: bool = False,
        apart: frozenset[str] = frozenset(),
        parts: bool = True,
        known: bool = True,
    ) -> None:
        """The value of `name` changes, and with it whatever may share state with it (see ``with_state_of``).

        Not `known`: an unknown method was called. In a cell that failed it was one of a library's, most likely.
        """
        if binding.kind in {"immutable", "dataset"}:
            if augmented:
                self._changed(name, binding, accumulates)
            return
        sharing = with_state_of(binding, self.environment, apart, parts=parts, still=self.still)
        if self.step.failed and not known:
            sharing -= {other for other in sharing if self._is_library(other)}
        for other, present in list(self.environment.items()):
            if other == name or other in sharing:
                self._changed(other, present, accumulates and other == name)

    def _suspect(self, step: Step) -> None:
        """Remember what may keep a value that changed before a step, by no cell: it is worth a warning."""
        for changed in step.seen.between & self.environment.keys():
            binding = self.environment[changed]
            package = binding.origin.module.partition(".")[0] if binding.origin.kind == "import" else None
            keeping = with_state_of(binding, self.environment, frozenset())
            for name, present in self.environment.items():
                of_module = present.origin.kind == "import" and present.origin.module.partition(".")[0] == package
                looked_at = name in step.seen.between or present.kind in DATA_KINDS
                if not looked_at and (name in keeping or of_module):
                    self.environment[name] = replace(present, suspects=present.suspects | {step.index})

    def _seen_still(self) -> frozenset[int]:
        """Return the tokens of what was seen to be the same after the step, down to the last of its parts.

        What shares state with it may have changed, but not in what is shared: that would have been seen. Unless it was
        changed after it was bound: another may have a part that it has no longer.
        """
        unchanged = (self.environment.get(name) for name in self.step.seen.unchanged)
        # A name's own token is its newest.
        own = frozenset(max(one.tokens) for one in unchanged if one is not None and one.tokens and not one.changes)
        return own & self.single

    def _changed(self, name: str, binding: Binding, accumulates: bool) -> None:
        self.noted += 1
        if name in self.step.seen.unchanged and self.step.index not in binding.definitions:
            return  # it looked as if it were
        self._touched(name)
        if self.suspect:
            if self.looking:
                self.looked_at.add(name)
            self.environment[name] = replace(binding, suspects=binding.suspects | {self.step.index})
            return
        self.environment[name] = binding.changed(self.step.index, accumulates)
        self.flow.changes[self.step.index].add(name)

    @contextmanager
    def _in_doubt_if_failed(self) -> Iterator[None]:
        """Changes in the block come from a look at something: where its cell failed, that is worth a warning only."""
        before = self.suspect, self.looking
        self.suspect, self.looking = self.suspect or self.step.failed, True
        try:
            yield
        finally:
            self.suspect, self.looking = before

    def _is_library(self, name: str) -> bool:
        origin = self.environment[name].origin
        package = origin.module.partition(".")[0]
        is_module = not origin.attribute or self.facts.kinds.get(name) == "module"
        return origin.kind == "import" and is_module and package not in self.facts.local_modules

    def _advance(self, name: str, iterator: Binding) -> None:
        """An iterator is used up, in part; not so what it goes through."""
        for other, present in list(self.environment.items()):
            if other == name or (present.kind == "iterator" and present.tokens & iterator.tokens):
                self._changed(other, present, accumulates=False)

    def _change_names(self, names: Iterable[str], parameters: frozenset[str]) -> None:
        for name in sorted(names):
            if name in self.environment and name not in parameters and self.environment[name].origin.kind != "import":
                self._spread(name, self.environment[name], accumulates=False)

    def _code_in(self, names: Iterable[str]) -> frozenset[int]:
        """Return the code of the cells that values carry, the methods of own objects say."""
        present = (self.environment[name] for name in names if name in self.environment)
        return frozenset[int]().union(*(one.codes for one in present if one.origin.kind in {"value", "loop"}))

    def _change_modules(self, package: str) -> None:
        """Whatever is imported from a package of the user's may see what was changed in it."""
        for name, binding in list(self.environment.items()):
            if binding.origin.kind == "import" and binding.origin.module.partition(".")[0] == package:
                self._changed(name, binding, accumulates=False)

    def _supposed(self, before: Mapping[str, int]) -> None:
        """Remember which names have been touched only because nothing is known of what a local module does."""
        for name, index in self.flow.touched.items():
            if index == self.step.index and before.get(name) != index:
                self.flow.supposed[name] = before.get(name, -1)

    def _may_be_model(self, name: str) -> bool:
        """Whether a value of which no kind is known is still there: what is gone was data, most likely."""
        binding = self.environment[name]
        return name in self.facts.others and self.last_binder.get(name) in binding.definitions
