"""What was executed, as Python; what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from det_native.capture.log import LoggedExecution
from det_native.capture.transform import Transformed
from det_native.capture.watch import Effects


@dataclass(frozen=True)
class Execution:
    """An execution of the log, as Python.

    Attributes
    ----------
    code : Transformed
        Its whole text as Python.
    source : str
        What of that can run again, without magics: of a cell that failed, as far as and with the statement that did.
    head : str
        Of a cell that failed: what stands before that statement.
    failed_line : int or None
        The line at which it failed, if that is known.
    language : str or None
        The cell magic of a cell that is not Python (``%%bash``), None for Python.
    repeated : frozenset of str
        Names that code which ran many times (``%timeit``) may have changed.
    """

    logged: LoggedExecution
    code: Transformed
    source: str = ""
    head: str = ""
    failed_line: int | None = None
    language: str | None = None
    repeated: frozenset[str] = frozenset()

    @property
    def index(self) -> int:
        """Place in the log, from 0."""
        return self.logged.index

    @property
    def effects(self) -> Effects | None:
        """What was seen of it; None of what ran before anybody looked."""
        return self.logged.seen.effects

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.logged.ending.succeeded is False

    @property
    def skipped(self) -> bool:
        """Whether it is tagged det-skip."""
        return "det-skip" in self.logged.front_end.tags

    @property
    def forced(self) -> bool:
        """Whether it is tagged det-include."""
        return "det-include" in self.logged.front_end.tags

    @property
    def fails_again(self) -> bool:
        """Whether what runs again of it has the statement that failed."""
        return self.failed and self.source != self.head

    @property
    def succeeded(self) -> str:
        """The part of its text that ran to its end, magics and all."""
        text = self.logged.source
        return "".join(text.splitlines(keepends=True)[: self.head.count("\n")]) if self.failed else text

    @property
    def label(self) -> str:
        """``Cell [7]``, as the notebook shows it."""
        if self.logged.number is None:
            return f"The code run before cell [{self.index + 1}]"
        return f"Cell [{self.logged.number}]"

    @property
    def cell(self) -> str:
        """``[7]``, as the report has it; empty where the cell has no number."""
        return f"[{self.logged.number}]" if self.logged.number is not None else ""


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
