"""What goes into the slicer, and what comes out of it: plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from det_native.capture.observation.watch import Effects
from det_native.capture.reads_record import Import
from det_native.errors import Problem


@dataclass(frozen=True)
class Execution:
    """An execution of the log, transformed and analysed.

    Attributes
    ----------
    index : int
        Place in the log, from 0.
    number : int or None
        What the notebook shows in brackets.
    cell : str
        Identity of the cell: its id where the front end gives one, else its text.
    language : str or None
        The cell magic of a cell that is not Python (``%%bash``), None for Python.
    shell : mapping of name to str
        Names bound from the shell or by a magic, and the line that does it.
    magics : tuple of str
        Magics that run code out of sight (``%run``, ``%store -r``).
    skipped, forced : bool
        Tagged det-skip or det-include.
    source : str
        Its Python, without magics; empty if there is none.
    effects : Effects or None
        What was seen of it; None of what ran before anybody looked.
    outside : tuple of str
        What it did outside of its process: ``shell: true``.
    missing : str
        The name or attribute that was not there, if that is why it failed.
    head : str
        Of a cell that failed: what stands before the statement that did. Empty where that cannot be told.
    last : str
        That statement; all of the cell where it cannot be told, and empty if it did nothing.
    until_call : str
        What stands before the first statement that trains, if a later one failed.
    dear : bool
        It took long, trained, or reached out of its process: it is not run again without need.
    shown : bool
        Its last line has a value that is there to be looked at.
    drew : bool
        It moved a stream of random numbers.
    interrupted : bool
        It failed because the user has interrupted it.
    """

    index: int
    number: int | None
    cell: str
    language: str | None = None
    shell: Mapping[str, str] = field(default_factory=dict)
    magics: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    failed: bool = False
    failed_line: int | None = None
    skipped: bool = False
    forced: bool = False
    clears: bool = False
    taken: frozenset[int] = frozenset()
    text: str = ""
    source: str = ""
    effects: Effects | None = None
    outside: tuple[str, ...] = ()
    missing: str = ""
    head: str = ""
    last: str = ""
    until_call: str = ""
    dear: bool = False
    shown: bool = False
    drew: bool = False
    interrupted: bool = False

    @property
    def sent(self) -> str:
        """What is sent of it: the whole cell, unless it failed."""
        return self.head if self.failed else self.source

    @property
    def succeeded(self) -> str:
        """The part of its text that ran to its end, magics and all."""
        return "".join(self.text.splitlines(keepends=True)[: self.head.count("\n")]) if self.failed else self.text

    @property
    def label(self) -> str:
        """``Cell [7]``, as the notebook shows it."""
        return f"Cell [{self.number}]" if self.number is not None else f"The code run before cell [{self.index + 1}]"


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
    """What is known besides of each execution.

    Attributes
    ----------
    stars : mapping of (module, level) to names
        What ``from module import *`` binds.
    fixed : frozenset of str
        Names of values that could not change when the first look was taken.
    looked_up : mapping of name to names
        Which names functions in the values looked up then.
    weights : mapping of int to names
        Of executions that trained models in a way that cannot be repeated, the models.
    only_trains : frozenset of int
        Those of them that do nothing else with the models.
    """

    stars: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    looked_up: Mapping[str, frozenset[str]] = field(default_factory=dict)
    weights: Mapping[int, frozenset[str]] = field(default_factory=dict)
    only_trains: frozenset[int] = frozenset()


@dataclass
class Slice:
    """What to send, and what is known of it.

    Attributes
    ----------
    included : dict of int to str
        Executions, in order, and why.
    problems : list of Problem
    warnings : list of str
    missing : list of (Missing, Execution)
        Names that nothing in the log binds, and who uses them.
    by_value : dict of str to int
        Of names that are sent by value, the first execution that needs them.
    loops : set of str
        Names that the call needs and a loop has bound.
    used : dict of int to set of str
        What is needed of each execution.
    read : set of str
        Names that the call's cell reads or binds.
    touched, surely_touched : dict of str to int
        The execution that last bound or changed a name, perhaps or for certain.
    imported : dict of str to Import
        Names that are what they were imported as.
    weights : list of (int, str)
        Models that get weights which travel, each with the execution that had trained it.
    doubtful : dict of str to int
        Names that a statement which failed may have changed in part, each with the first execution that needs it.
    heads : dict of int to str
        Of failed executions of which less is sent than all before the statement that failed: what is.
    untrained : set of int
        Those of them of which something is needed that their training call was given.
    """

    included: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    missing: list[tuple[Missing, Execution]] = field(default_factory=list)
    by_value: dict[str, int] = field(default_factory=dict)
    loops: set[str] = field(default_factory=set)
    used: dict[int, set[str]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    touched: dict[str, int] = field(default_factory=dict)
    surely_touched: dict[str, int] = field(default_factory=dict)
    imported: dict[str, Import] = field(default_factory=dict)
    weights: list[tuple[int, str]] = field(default_factory=list)
    doubtful: dict[str, int] = field(default_factory=dict)
    heads: dict[int, str] = field(default_factory=dict)
    untrained: set[int] = field(default_factory=set)
