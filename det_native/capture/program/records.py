"""What goes into the choice of what runs again, and what comes out of it: plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["whole", "until", "settings"]


class Read(NamedTuple):
    """How a run reads a name: by which way (``("train", "scale")``), at which line, and whether whenever it runs."""

    path: tuple[str, ...]
    line: int = 0
    certain: bool = True

    @property
    def is_direct(self) -> bool:
        """Whether the run's own lines read it, whenever it runs."""
        return self.certain and len(self.path) == 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a cell, as it was seen.

    Attributes
    ----------
    source : str
        Its Python; of a run that failed, as far as and with the statement that failed. Empty if there is none.
    failed_line : int or None
        The line that failed, and that fails again.
    reads : mapping of str to Read
        Names whose value from before it needs, those that functions in their values look up among them.
    bound, removed, changed : frozenset of str
        Names that it gave another value, took away, or whose same value it has changed, perhaps.
    between : frozenset of str
        Names that were changed since the run before it, by no cell.
    lost : frozenset of str
        Names that running it again does not make what they were: set by a shell line, or by a statement that was
        interrupted.
    drawn : frozenset of str
        Names that it made of random bytes which nobody restores: running it again makes others.
    sets : tuple of str
        What it was seen to set for the whole process.
    leaves : bool
        It may have left what no name shows: files, the place of a stream of data, or nobody looked.
    seconds : float
        How long it took, without imports.
    stays : str
        Why it does not run again unless something needs it: ``trained``.
    never : str
        Why it cannot run again: ``%%bash``.
    wanted : bool
        It runs again in any case: it calls ``init()``, or makes the call.
    secret_lines : frozenset of int
        Its lines with what looks like a secret.
    """

    source: str = ""
    failed_line: int | None = None
    reads: Mapping[str, Read] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    drawn: frozenset[str] = frozenset()
    sets: tuple[str, ...] = ()
    leaves: bool = False
    seconds: float = 0.0
    stays: str = ""
    never: str = ""
    wanted: bool = False
    secret_lines: frozenset[int] = frozenset()

    @property
    def touched(self) -> frozenset[str]:
        """Names that are not what they were before it."""
        return self.bound | self.removed | self.changed | self.lost


class Travel(NamedTuple):
    """Whether the present value of a name can travel: its size in bytes, or why not.

    `weights`: they are put into an object of the same build, which has to be there. `code` are names of classes and
    functions that have to be there. `shares` are names whose values have objects in common with this one; of a model's
    that matters (`holds_model`), of numbers (`is_data`) it does not. `wrapped_in`: the runs
    that wrapped models and optimizers of the call to which it leads: its context knows the objects that these make.
    """

    size: int = 0
    refused: str = ""
    weights: bool = False
    code: frozenset[str] = frozenset()
    shares: frozenset[str] = frozenset()
    holds_model: bool = False
    is_data: bool = False
    wrapped_in: frozenset[int] = frozenset()


class Step(NamedTuple):
    """A run, or a part of it, that runs again.

    `optional_from` is the line from which on an error of it is passed over: 1 where nothing needs it. `failed_line` is
    the one at which it failed.
    """

    run: int
    kind: Kind
    source: str
    optional_from: int | None = None
    failed_line: int | None = None


class Value(NamedTuple):
    """A value that travels: bound before a run; `maker` is the run that made it, None if none did.

    `in_place`: a run that runs again makes the object of which this is the later state.
    """

    name: str
    before: int
    maker: int | None
    in_place: bool = False


class Refusal(NamedTuple):
    """A name that a run needs and that cannot travel; what made it may run again."""

    name: str
    user: int
    maker: int | None
    why: str


@dataclass
class Plan:
    """What runs again, what travels and what stays behind.

    Attributes
    ----------
    steps : list of Step
        In the order of the runs; the last one makes the call.
    left : dict of int to str
        Runs that stay behind, but for the settings of some, and why.
    forced : dict of int to Refusal or None
        Runs that run again against their nature, as this name of them is needed and cannot travel; None for what they
        set for the process.
    unlike : dict of int to set of str
        Names that runs make of random bytes and that cannot travel: there they are others.
    lost_settings : dict of int to tuple of str
        Of runs that stay behind: what they have set for the process.
    needed : frozenset of int
        Runs without which the call cannot be made.
    """

    steps: list[Step] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    left: dict[int, str] = field(default_factory=dict)
    forced: dict[int, Refusal | None] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    unlike: dict[int, set[str]] = field(default_factory=dict)
    lost_settings: dict[int, tuple[str, ...]] = field(default_factory=dict)
    needed: frozenset[int] = frozenset()
