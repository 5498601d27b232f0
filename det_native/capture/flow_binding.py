"""Following the log: what a name is bound to, and with what its value shares state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from det_native.capture.bindings import Binding
from det_native.capture.events import Access, Bind, Call, Change, Event, called_for
from det_native.capture.flow_state import FlowState
from det_native.capture.own_classes import returned_names, told_of_classes
from det_native.capture.sharing import classes_in, copied_names, is_taken_over, kind_made, shared_names
from det_native.capture.vocabulary import DATA_KINDS

#: Kinds of which parts are other tables or arrays, that share nothing with them or are views and known as such.
_MADE_FROM = frozenset({"table", "array", "array view", "tensor", "immutable", "iterator", "dataset"})


class BindingFlow(FlowState):
    """Binds names."""

    def _settled(self, event: Event) -> Iterator[Event]:
        """Yield the event, with names of what results of calls may be a part of in place of the results."""
        if isinstance(event, Change | Access):
            called = called_for(event.name)
            if called is None:
                yield event
                return
            for name in sorted(self._given_by(called)):
                yield replace(event, name=name)
        elif isinstance(event, Call):
            arguments = tuple((position, self._settled_names(names)) for position, names in event.arguments)
            yield event if arguments == event.arguments else replace(event, arguments=arguments)
        elif isinstance(event, Bind):
            through = tuple((path, self._settled_names(names)) for path, names in event.through)
            yield replace(event, aliases=self._settled_names(event.aliases), through=through)
        else:
            yield event

    def _settled_names(self, names: frozenset[str]) -> frozenset[str]:
        called = {name: found for name in names if (found := called_for(name)) is not None}
        given = (self._given_by(name) for name in called.values())
        return names.difference(called).union(*given) if called else names

    def _given_by(self, name: str) -> frozenset[str]:
        """Return the names of which what a call gives, that begins with `name`, may be a part."""
        binding = self.environment.get(name)
        if binding is None or binding.origin.kind == "class":
            return frozenset()
        if binding.origin.kind == "def":
            return returned_names(name, self.environment, self.codes)
        package = binding.origin.module.partition(".")[0]
        made = binding.origin.kind == "import" and package not in self.facts.local_modules
        return frozenset() if made else frozenset({name})

    def _bind(self, event: Bind) -> None:
        old = self.environment.get(event.name)
        if event.origin.kind == "import" and old is not None and old.origin == event.origin and not old.changes:
            self._import_again(event.name, old)
            return
        kind = self.facts.kinds.get(event.name) if self.last_binder.get(event.name) == self.step.index else None
        kind = kind or kind_made(event, self.environment)
        codes: frozenset[int] = frozenset(self.codes.number(code) for code in event.codes)
        tokens = frozenset({next(self.tokens)})
        if not self.depth:
            self.single |= tokens
        taken = any(is_taken_over(path, event.line, self.step.taken) for path, _ in event.through)
        classes: frozenset[int] = frozenset()
        if kind not in DATA_KINDS and not taken:
            classes = classes_in(event, self.environment)
            codes = codes.union(*self._carried(event))
        whole, parts = event.whole, frozenset[int]()
        if kind != "immutable":
            shared, parts, whole = self._shared_state(event, kind)
            tokens |= shared
        if event.origin.kind == "class":
            self._derive(event)
        updates: tuple[int, ...] = ()
        if event.updates and old is not None:
            updates = old.updates if self.step.index in old.updates else (*old.updates, self.step.index)
        definitions = frozenset({self.step.index})
        shallow = event.name in self.facts.shallow and self.last_binder.get(event.name) == self.step.index
        binding = Binding(
            definitions,
            frozenset(),
            updates,
            codes,
            tokens,
            event.origin,
            kind,
            classes=classes,
            shallow=shallow,
            parts=parts,
            whole=whole,
        )
        self._set(event.name, binding)
        if event.origin.module == "__future__":
            self._effect(f"from __future__ import {event.origin.attribute}")

    def _carried(self, event: Bind) -> Iterator[frozenset[int]]:
        """Yield the code that a value may carry: that of the names it is made from, and of the classes it is of."""
        called = {path[0] for path, _ in event.through if len(path) == 1}
        for name in event.sources & self.environment.keys():
            binding = self.environment[name]
            made = name in called and binding.origin.kind == "def"
            yield self.codes.results(binding.codes) if made else binding.codes
        if self.last_binder.get(event.name) == self.step.index:
            for name in self.facts.classes.get(event.name, frozenset()) & self.environment.keys():
                if self.environment[name].origin.kind == "class":
                    yield self.environment[name].codes

    def _shared_state(self, event: Bind, kind: str | None) -> tuple[frozenset[int], frozenset[int], bool]:
        """Return the tokens that the value shares, those of what it copies, and whether it is all of that."""
        names: Iterable[str] = shared_names(event, self.environment, self.facts.local_modules, self.step.taken)
        if kind in {"table", "array"} and not event.same:
            names = self._kept_entire(event, names)
        shared = [self.environment[name] for name in names if name in self.environment]
        copied = (self.environment[name] for name in copied_names(event, self.environment))
        returned = self._returned(event)
        of_one = event.same and all(one.whole for one in shared)
        whole = event.whole and (of_one if shared else not returned)
        tokens = returned.union(*(one.tokens for one in shared))
        parts = frozenset[int]().union(*(one.tokens | one.parts for one in copied), *(one.parts for one in shared))
        # If it is a part, it may be one of the things that are kept there.
        return (tokens, parts, True) if whole else (tokens | parts, frozenset(), False)

    def _kept_entire(self, event: Bind, names: Iterable[str]) -> Iterator[str]:
        """Those of the names of which a table or array may be the value, or be kept in it: not what it is made from."""
        entire = event.entire.union(*(given for path, given in event.through if self._gives_back(path)))
        for name in names:
            if name in entire or (name in self.environment and self._kind(name) not in _MADE_FROM):
                yield name

    def _gives_back(self, path: tuple[str, ...]) -> bool:
        """Whether a function of the cells may return what it is given."""
        binding = self.environment.get(path[0])
        if binding is None or binding.origin.kind != "def" or len(path) > 1:
            return False
        return any(self.codes[number].gives_back for number in binding.codes)

    def _kind(self, name: str) -> str | None:
        """The kind of a name's value; if it was bound again since, that of what it has now, most likely the same."""
        return self.environment[name].kind or self.facts.kinds.get(name)

    def _returned(self, event: Bind) -> frozenset[int]:
        """Return the tokens of what the functions that are called for a value give of their global names."""
        names = (returned_names(path[0], self.environment, self.codes) for path, _ in event.through)
        return frozenset().union(*(self.environment[name].tokens for each in names for name in each))

    def _derive(self, event: Bind) -> None:
        """A class of the cells that hears of what is derived from it may keep that: a registry."""
        for name in told_of_classes(event, self.environment, self.codes):
            self._spread(name, self.environment[name], accumulates=False)
            self.filled.add(name)

    def _import_again(self, name: str, binding: Binding) -> None:
        # Nothing is new, and who comes later may have it from here too; unless this is done in some cases only.
        if not self.depth and not self.suspect and self.step.index not in binding.definitions:
            kind = self.facts.kinds.get(name) if self.last_binder.get(name) == self.step.index else binding.kind
            self.environment[name] = replace(binding, again=binding.again | {self.step.index}, kind=kind)
            self.flow.binds[self.step.index].add(name)
