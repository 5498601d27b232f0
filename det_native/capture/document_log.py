"""The cells of a document as a log of executions: as if they had been run from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from det_native.capture.document_calls import FoundCall
from det_native.capture.document_sites import instruction_position
from det_native.capture.log import CallRecord, ExecutionLog, LoggedExecution, comment_tags
from det_native.capture.transform import Transformed, transform


@dataclass(frozen=True)
class DocumentCell:
    """A code cell of a document.

    Attributes
    ----------
    id : str
    source : str
        As the front end has it now.
    execution_count : int or None
        What the notebook shows in brackets.
    executed : str or None
        What last ran; None if it never did, or nobody knows.
    tags : frozenset of str
    """

    id: str
    source: str
    execution_count: int | None = None
    executed: str | None = None
    tags: frozenset[str] = field(default_factory=frozenset)


class DocumentLog(ExecutionLog):
    """A log that no kernel has kept.

    Parameters
    ----------
    cells : sequence of DocumentCell

    Attributes
    ----------
    invalid : dict of int to str
        Cells that are not valid Python, and why.
    prompts : bool
        Whether cells have the numbers that the notebook shows; else their places among the code cells that are not
        empty.
    """

    def __init__(self, cells: Sequence[DocumentCell]) -> None:
        super().__init__(SimpleNamespace(user_ns={}))
        self.cells = [cell for cell in cells if cell.source.strip()]
        self.invalid: dict[int, str] = {}
        for index, cell in enumerate(self.cells):
            self._add(index, cell)
        self.number_cells(len(self.cells))

    def number_cells(self, count: int) -> None:
        """Number the cells as the notebook does, if each of the first `count` shows a number of its own.

        Else by their place, so that no two that matter are called alike.
        """
        shown = [cell.execution_count for cell in self.cells[:count]]
        self.prompts = None not in shown and len(set(shown)) == len(shown)
        for logged, cell in zip(self.executions, self.cells, strict=True):
            number = cell.execution_count if self.prompts else None
            logged.number = number or logged.index + 1
            logged.title = f"Cell [{number}]" if number is not None else f"Code cell {logged.index + 1}"

    def _add(self, index: int, cell: DocumentCell) -> None:
        transformed = transform(cell.source)
        tags = cell.tags | comment_tags(cell.source)
        logged = LoggedExecution(index, index + 1, cell.source, cell.id, tags, succeeded=True)
        logged.files[_file(index)] = int(cell.source.lstrip().startswith("%%"))
        if transformed.error and transformed.language is None:
            self.invalid[index] = transformed.error
            logged.succeeded = logged.ran = False
        self.executions.append(logged)

    def transformed(self, index: int) -> Transformed:
        """Return a cell as Python."""
        return transform(self.cells[index].source)

    def sources(self) -> list[str | None]:
        """Return the cells that are Python, and are not skipped; None in place of the others."""
        return [
            None
            if logged.index in self.invalid or "det-skip" in logged.tags or self.transformed(logged.index).language
            else self.transformed(logged.index).source
            for logged in self.executions
        ]

    def record(self, call: FoundCall) -> CallRecord:
        """Return the record of a call, as the kernel's log would have it."""
        transformed = self.transformed(call.owner)
        line, column = instruction_position(transformed.source, call.node)
        lines = transformed.kernel_lines
        kernel_line = lines.index(line) + 1 if line in lines else line
        return CallRecord(
            call.kind, call.running, _file(call.owner), kernel_line, column, running_line=call.running_line
        )


def _file(index: int) -> str:
    return f"<document cell {index}>"
