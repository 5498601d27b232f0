"""What was executed, as Python, and what is known of it: from the log to executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from det_native.capture.bindings import star_names
from det_native.capture.calls import cell_line
from det_native.capture.failure import Divided, divide
from det_native.capture.log import ExecutionLog, LoggedExecution
from det_native.capture.reads import reads_of
from det_native.capture.transform import Transformed, transform
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


def executions_of(log: ExecutionLog, until: int) -> list[Execution]:
    """Return the executions up to and with index `until`, transformed."""
    return [_execution(logged, transform(logged.source)) for logged in log.executions[: until + 1]]


def _execution(logged: LoggedExecution, transformed: Transformed) -> Execution:
    failed = logged.ending.succeeded is False
    language = transformed.language
    source = ""
    if language is None and not transformed.error and (logged.ending.ran or not failed):
        source = transformed.source
    elif language is None and transformed.error and not failed:
        language = "syntax that only IPython understands"
    language = language if source or logged.ending.ran else None
    failed_line = None
    if failed and logged.ending.error_line is not None:
        body = logged.ending.error_in_body or max(logged.files.values(), default=0) > 0
        failed_line = cell_line(transformed.kernel_lines, logged.source, logged.ending.error_line, body)
    divided = Divided("", "")
    if source and failed_line is not None:
        divided = divide(source, failed_line, refused=logged.ending.refused)
    if failed:
        source = divided.head if logged.ending.interrupted else divided.again
    changed = _changed_names(transformed.repeated)
    return Execution(logged, transformed, source, divided.head, failed_line, language, changed)


def _changed_names(source: str) -> frozenset[str]:
    """Return the names that code which ran many times (``%timeit``) may have changed."""
    try:
        code = reads_of(source)
    except SyntaxError:
        return frozenset()
    return frozenset((code.stored_into | code.called) & code.reads.keys())


def facts_of(executions: Sequence[Execution], log: ExecutionLog) -> Facts:
    """Return what is known besides: of the beginning of the log, and of modules."""
    stars = {star for execution in executions if execution.source for star in reads_of(execution.source).stars}
    return Facts({star: star_names(star[0]) or frozenset() for star in stars}, log.fixed, log.looked_up)
