"""What is known of the value of a name at one point of the log, and how two such states are merged."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from det_native.capture.events import Code, Origin

#: Names that a program always has, besides those of ``builtins``.
ALWAYS_THERE = frozenset(dir(builtins)) | {"__name__", "__doc__", "__builtins__", "__spec__", "__loader__"}

#: Names that IPython puts into the namespace for its own history.
HISTORY_NAMES = frozenset({"_", "__", "___", "_i", "_ii", "_iii", "In", "Out", "_ih", "_oh", "_dh"})


@dataclass(frozen=True)
class Binding:
    """The present value of a name.

    Attributes
    ----------
    definitions : frozenset of int
        Executions that may have bound it.
    changes : frozenset of int
        Executions that may have changed the value since.
    updates : tuple of int
        Executions that computed the value from its predecessor, since it was last set afresh.
    codes : frozenset of Code
        Functions and methods that can be reached from the value.
    tokens : frozenset of int
        Abstract objects that the value may be, or share state with.
    classes : frozenset of int
        Tokens of classes that it may have instances of.
    suspects : frozenset of int
        Failed executions that may have changed the value while they failed.
    by_value : bool
        The value is sent; nothing has to run for it.
    again : frozenset of int
        Of an import: executions that have imported the same since, any of which would do.
    shallow : bool
        A container that keeps nothing which can change.
    parts : frozenset of int
        Tokens of containers of which it is a copy: it is another one, with the same things in it.
    whole : bool
        It is what its tokens stand for, not a part of that.
    """

    definitions: frozenset[int] = frozenset()
    changes: frozenset[int] = frozenset()
    updates: tuple[int, ...] = ()
    codes: frozenset[int] = frozenset()
    tokens: frozenset[int] = frozenset()
    origin: Origin = field(default_factory=lambda: Origin("value"))
    kind: str | None = None
    suspects: frozenset[int] = frozenset()
    by_value: bool = False
    again: frozenset[int] = frozenset()
    classes: frozenset[int] = frozenset()
    shallow: bool = False
    parts: frozenset[int] = frozenset()
    whole: bool = False

    def changed(self, execution: int, accumulates: bool) -> Binding:
        """Return the binding after `execution` changed the value in place."""
        if execution in self.changes and not accumulates:
            return self
        updates = self.updates
        if accumulates and execution not in updates:
            updates = (*updates, execution)
        return replace(self, changes=self.changes | {execution}, updates=updates)


Environment = dict[str, Binding]


def join(first: Binding, second: Binding) -> Binding:
    """Return what is known when either of two bindings may hold."""
    if first == second:
        return first
    return Binding(
        first.definitions | second.definitions,
        first.changes | second.changes,
        (*first.updates, *(update for update in second.updates if update not in first.updates)),
        first.codes | second.codes,
        first.tokens | second.tokens,
        first.origin if first.origin == second.origin else Origin("value"),
        first.kind if first.kind == second.kind else None,
        first.suspects | second.suspects,
        first.by_value and second.by_value,
        first.again & second.again,
        first.classes | second.classes,
        first.shallow and second.shallow,
        first.parts | second.parts,
        first.whole and second.whole,
    )


def merge(environments: list[Environment]) -> Environment:
    """Return the environment after alternatives of which any may have run."""
    merged: Environment = dict(environments[0])
    for environment in environments[1:]:
        for name, binding in environment.items():
            merged[name] = join(merged[name], binding) if name in merged else binding
    return merged


class CodeRegistry:
    """Numbers for ``Code`` objects, so that sets of them are cheap."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._codes: list[Code] = []

    def number(self, code: Code) -> int:
        """Return the number of `code`, the same for the same object."""
        number = self._numbers.get(id(code))
        if number is None:
            number = self._numbers[id(code)] = len(self._codes)
            self._codes.append(code)
        return number

    def results(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return the numbers of what the results of functions carry."""
        return frozenset(self.number(self._codes[number].result) for number in numbers)

    def __getitem__(self, number: int) -> Code:
        return self._codes[number]


def import_path(environment: Mapping[str, Binding], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the full dotted path of `path` if it starts with an imported name (``("np", "abs")``: numpy, abs)."""
    binding = environment.get(path[0])
    if binding is None or binding.origin.kind != "import":
        return None
    origin = binding.origin
    parts = tuple(origin.module.split(".")) if origin.module else ()
    return (*parts, *((origin.attribute,) if origin.attribute else ()), *path[1:])
