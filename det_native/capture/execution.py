"""What was executed, as Python; what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from det_native.capture.watch import Effects


@dataclass(frozen=True)
class Execution:
    """An execution of the log, as Python.

    Attributes
    ----------
    index : int
        Place in the log, from 0.
    number : int or None
        What the notebook shows in brackets.
    language : str or None
        The cell magic of a cell that is not Python (``%%bash``), None for Python.
    shell : mapping of name to str
        Names bound from the shell or by a magic, and the line that does it.
    magics : tuple of str
        Magics that run code out of sight (``%run``, ``%store -r``).
    repeated : frozenset of str
        Names that code which ran many times may have changed (``%timeit``).
    failed : bool
    failed_line : int or None
        The line at which it failed, if that is known.
    interrupted : bool
        It failed because the user has interrupted it.
    skipped, forced : bool
        Tagged det-skip or det-include.
    clears : bool
        It takes away all names.
    text : str
        As the notebook has it.
    source : str
        Its Python that can run again, without magics: of a cell that failed, as far as and with the statement that did.
    head : str
        Of a cell that failed: what stands before that statement.
    effects : Effects or None
        What was seen of it; None of what ran before anybody looked.
    outside : tuple of str
        What it did outside of its process: ``shell: true``.
    """

    index: int
    number: int | None
    language: str | None = None
    shell: Mapping[str, str] = field(default_factory=dict)
    magics: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    failed: bool = False
    failed_line: int | None = None
    interrupted: bool = False
    skipped: bool = False
    forced: bool = False
    clears: bool = False
    text: str = ""
    source: str = ""
    head: str = ""
    effects: Effects | None = None
    outside: tuple[str, ...] = ()

    @property
    def fails_again(self) -> bool:
        """Whether what runs again of it has the statement that failed."""
        return self.failed and self.source != self.head

    @property
    def succeeded(self) -> str:
        """The part of its text that ran to its end, magics and all."""
        return "".join(self.text.splitlines(keepends=True)[: self.head.count("\n")]) if self.failed else self.text

    @property
    def label(self) -> str:
        """``Cell [7]``, as the notebook shows it."""
        return f"Cell [{self.number}]" if self.number is not None else f"The code run before cell [{self.index + 1}]"

    @property
    def cell(self) -> str:
        """``[7]``, as the report has it; empty where the cell has no number."""
        return f"[{self.number}]" if self.number is not None else ""


@dataclass
class Facts:
    """What is known besides of all executions.

    Attributes
    ----------
    stars : mapping of (module, level) to names
        What ``from module import *`` binds.
    fixed : frozenset of str
        Names of values that could not change when the first look was taken.
    looked_up : mapping of name to names
        Which names functions in the values looked up then.
    """

    stars: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    looked_up: Mapping[str, frozenset[str]] = field(default_factory=dict)
