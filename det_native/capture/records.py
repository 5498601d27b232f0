"""What goes into the forward pass over the log, and what comes out: plain records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from det_native.capture.analysis import Statement
from det_native.capture.bindings import Environment
from det_native.capture.events import Stream
from det_native.capture.watch import NOTHING_SEEN, Seen


@dataclass(frozen=True)
class Step:
    """An execution as the flow sees it: its statements with their lines, and which of them ran.

    Attributes
    ----------
    statements : sequence of Statement
    failed : bool
    failed_line : int or None
        Line at which it failed; None with `failed` means that nobody knows how far it came.
    last_line : int or None
        For the calling execution: the line of the call; later statements do not matter.
    taken : frozenset of int
        Lines at which a training call was made and taken over (submitted, or trained by the controller).
    bindings : frozenset of str
        Names bound by other means than Python (shell captures).
    clears : bool
        It removed all names first (``%reset``).
    repeated : frozenset of str
        Names that code under ``%timeit`` may have changed.
    seen : Seen
        Which values were seen to be others after it, and which to be the same.
    noted : bool
        The states of the streams of random numbers before it are known: it needs no cell for what it draws.
    """

    index: int
    statements: Sequence[Statement]
    failed: bool = False
    failed_line: int | None = None
    last_line: int | None = None
    taken: frozenset[int] = frozenset()
    bindings: frozenset[str] = frozenset()
    clears: bool = False
    repeated: frozenset[str] = frozenset()
    seen: Seen = NOTHING_SEEN
    noted: bool = False


@dataclass(frozen=True)
class Need:
    """A value that an execution uses. `path` leads to the name through the functions that look it up.

    Of an import, one of `again`, executions that have imported the same since, does as well as the one of `makers`.
    """

    name: str
    makers: frozenset[int]
    updates: tuple[int, ...]
    path: tuple[str, ...]
    by_value: bool
    loop: bool
    line: int
    suspects: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Missing:
    """A name that no execution binds.

    `certain`: the code that looks it up runs whenever its cell does. A cell that succeeded can only have done that if
    the name was there by other means.
    """

    name: str
    path: tuple[str, ...]
    line: int
    certain: bool


@dataclass
class Facts:
    """What is known from the live namespace and the file system; plain data, so that the slicer stays pure.

    Attributes
    ----------
    kinds : mapping of name to str
        Kinds of live values, see ``facts.kind_of``.
    stars : mapping of (module, level) to names
        What ``from module import *`` binds.
    local_modules : frozenset of str
        Top-level names of modules that are the user's own files.
    setters : frozenset of tuple of str
        Dotted paths of functions of such modules that change what their module keeps, see ``module_state``.
    others : frozenset of str
        Names of live values of which no kind is known: models and the like.
    shallow : frozenset of str
        Names of live containers that keep nothing which can change.
    classes : mapping of name to names
        Which of the notebook's classes live values are instances of, or keep instances of.
    foreign : frozenset of str
        Names of live values that are of no class of the notebook.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    stars: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    local_modules: frozenset[str] = frozenset()
    setters: frozenset[tuple[str, ...]] = frozenset()
    others: frozenset[str] = frozenset()
    shallow: frozenset[str] = frozenset()
    classes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()


@dataclass
class Flow:
    """Result of the forward pass, by index of execution.

    ``seeds`` and ``draws`` say, of each stream of random numbers, which executions seeded it and which drew from it.
    ``touched`` says which execution last bound or changed a name, ``final`` what holds at the end. ``supposed`` has the
    names that were last touched only by being given to code of which nothing is known, with what touched them before.
    """

    needs: dict[int, dict[tuple[str, frozenset[int]], Need]] = field(default_factory=dict)
    missing: dict[int, dict[str, Missing]] = field(default_factory=dict)
    effects: dict[int, list[str]] = field(default_factory=dict)
    risks: dict[int, list[str]] = field(default_factory=dict)
    dynamic: set[int] = field(default_factory=set)
    seeds: dict[Stream, set[int]] = field(default_factory=dict)
    draws: dict[Stream, set[int]] = field(default_factory=dict)
    binds: dict[int, set[str]] = field(default_factory=dict)
    changes: dict[int, set[str]] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)
    supposed: dict[str, int] = field(default_factory=dict)
    final: Environment = field(default_factory=dict)
