"""What the code of one execution does, in order: the language between the analysis and the slicer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

#: One link of a chain of accesses on a name: ``df["a"].mean()`` is item, attribute, call.
Link = tuple[Literal["attribute", "item", "call"], str]

Stream = Literal["numpy", "random", "torch", "tensorflow"]


@dataclass(frozen=True)
class Code:
    """A function, method or lambda: code that runs later, and looks its global names up when it runs.

    Attributes
    ----------
    name : str
        For messages; ``Class.method`` for methods.
    reads : frozenset of str
        Global names that the body looks up.
    optional : frozenset of str
        Those of them that the body can do without (inside ``try`` with ``except NameError``).
    parameters : tuple of str
        Positional parameters in order, then keyword-only ones.
    kept : frozenset of str
        Those of them whose default is made once and can be changed: ``def note(x, seen=[])``.
    returns : frozenset of str
        Global names of which the result may be the value, or a part of it.
    gives_back : frozenset of str
        Parameters of which the result, or something in it, may be the value.
    decorators : frozenset of str
        Last parts of their names.
    events : tuple of Event
        What the body does to anything but its own local variables.
    lasting : tuple of Event or None
        Those of them that the result may still do: of functions inside. None if it may do all, as generators.
    only_called : frozenset of str
        Names that the body does nothing with but call them.
    """

    name: str
    line: int
    reads: frozenset[str]
    optional: frozenset[str] = frozenset()
    parameters: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    kept: frozenset[str] = frozenset()
    returns: frozenset[str] = frozenset()
    gives_back: frozenset[str] = frozenset()
    decorators: frozenset[str] = frozenset()
    lasting: tuple[Event, ...] | None = None
    only_called: frozenset[str] = frozenset()
    is_result: bool = False

    @cached_property
    def result(self) -> Code:
        """What is left of it for the result of a call: the body has run, and does not again."""
        return self if self.lasting is None else replace(self, events=self.lasting, is_result=True)

    @property
    def bound(self) -> bool:
        """Whether it is given what it is called on, if it is a method."""
        return bool(self.parameters) and "staticmethod" not in self.decorators

    @cached_property
    def changes_and_calls(self) -> tuple[Change | Call, ...]:
        """Those among the events, of all alternatives: looked through again and again."""
        return tuple(event for event in flat(self.events) if isinstance(event, Change | Call))

    @cached_property
    def outward(self) -> tuple[Bind | Change | Access | Call, ...]:
        """Those among the events that may reach something else than what it is given."""
        events = (event for event in flat(self.events) if isinstance(event, Bind | Change | Access | Call))
        return tuple(event for event in events if not _stays_within(event, frozenset(self.parameters)))

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Names that are called with nothing but what it is given, made of them or of plain values."""
        return tuple(sorted({one.callee[0] for one in self.outward if self._is_modest(one)}))  # type: ignore[union-attr]

    @cached_property
    def reached(self) -> tuple[str, ...]:
        """All other names of what its outward events reach."""
        names: set[str] = set()
        for event in self.outward:
            if isinstance(event, Call):
                names |= {event.callee[0]} if not self._is_modest(event) else set()
                names = names.union(*(given for _, given in event.arguments)).difference(self.parameters)
            else:
                names.add(event.name)
        return tuple(sorted(called_for(name) or name for name in names))

    def _is_modest(self, event: Event) -> bool:
        return isinstance(event, Call) and all(given <= {*self.parameters} for _, given in event.arguments)


@dataclass(frozen=True)
class Origin:
    """How a name came to be, where that matters: an import, a definition, a loop."""

    kind: Literal["import", "def", "class", "loop", "value"]
    module: str = ""
    attribute: str = ""
    level: int = 0


@dataclass(frozen=True)
class Read:
    """The value of a global name is used. `called`: code reachable from it may run now."""

    name: str
    line: int
    called: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Bind:
    """A global name gets a value.

    Attributes
    ----------
    sources : frozenset of str
        Names whose code (functions, classes) the value may carry along.
    aliases : frozenset of str
        Names that the value may share state with.
    through : tuple of (path, names)
        Calls whose result becomes (part of) the value, and what was passed to them: it may share state with that.
    same : bool
        The value *is* that of the one alias (``b = a``).
    updates : bool
        The new value is computed from the name's old one.
    copies : frozenset of str
        Names of which the value is a shallow copy: what is kept in them is in both.
    whole : bool
        The value is new, or that of one name, and not a part of something.
    entire : frozenset of str
        Those names of which the value, or something in it, may be all that they stand for: ``for d in [train, test]``.
    """

    name: str
    line: int
    sources: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()
    through: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = ()
    same: bool = False
    codes: tuple[Code, ...] = ()
    origin: Origin = field(default_factory=lambda: Origin("value"))
    updates: bool = False
    copies: frozenset[str] = frozenset()
    whole: bool = False
    entire: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """A value is changed, or may be, without its name being bound.

    `chain` is what is done with the name, e.g. ``model.layers[0].set_weights(w)``; `accumulates` says that doing it
    twice differs from doing it once.
    """

    name: str
    line: int
    end_line: int
    how: Literal["attribute", "item", "augmented", "call", "argument"]
    chain: tuple[Link, ...] = ()
    accumulates: bool = False
    in_place: bool = False


@dataclass(frozen=True)
class Call:
    """A call; ``callee`` is the dotted path from a global name, e.g. ``("np", "random", "shuffle")``.

    `arguments` are (position or keyword, names whose value is passed, not copied). `imported`: the path starts with a
    module, not with a global name.
    """

    callee: tuple[str, ...]
    line: int
    arguments: tuple[tuple[int | str, frozenset[str]], ...] = ()
    keywords: frozenset[str] = frozenset()
    imported: bool = False


@dataclass(frozen=True)
class Access:
    """Something is accessed in a way that may run a method of it: ``d["a"]`` `__getitem__`, ``d.size`` a property."""

    name: str
    line: int
    method: str


@dataclass(frozen=True)
class Delete:
    """A name is unbound."""

    name: str
    line: int


@dataclass(frozen=True)
class Star:
    """``from module import *``."""

    module: str
    level: int
    line: int


@dataclass(frozen=True)
class Branch:
    """Code that may run or not: the alternatives start from the same state and are merged afterwards."""

    alternatives: tuple[tuple[Event, ...], ...]
    line: int


def _stays_within(event: Bind | Change | Access | Call, names: frozenset[str]) -> bool:
    """Whether something is done with values of these names only."""
    if isinstance(event, Call):
        return event.callee[0] in names and all(given <= names for _, given in event.arguments)
    return not isinstance(event, Bind) and event.name in names


_RESULT = "()"


def result_of(name: str) -> str:
    """Return what stands for the result of a call that begins with a global name, among names: ``np.zeros(3)``."""
    return name + _RESULT


def called_for(name: str) -> str | None:
    """Return the name that :func:`result_of` was given, None if `name` is just a name."""
    return name.removesuffix(_RESULT) if name.endswith(_RESULT) else None


Event = Read | Bind | Change | Access | Call | Delete | Star | Branch


def flat(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events, those of all alternatives of a branch included."""
    for event in events:
        if isinstance(event, Branch):
            for alternative in event.alternatives:
                yield from flat(alternative)
        else:
            yield event


def bound_names(events: Iterable[Event]) -> Iterator[str]:
    """Yield the names that the events bind, in any alternative."""
    for event in flat(events):
        if isinstance(event, Bind):
            yield event.name


def name_of(event: Event) -> str:
    """Return the name that an event is about, empty where it is about none."""
    return getattr(event, "name", "")
