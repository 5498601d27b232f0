"""Cells that may fail on a worker: those that the training needs nothing of, and those that failed in the notebook."""

from __future__ import annotations

import ast
import logging

from det_native.schema.manifests import Cell, Program
from det_native.schema.reports import CaptureRow

logger = logging.getLogger("det_harness")


def may_fail(cell: Cell, place: int) -> bool:
    """Whether an error of a statement, by its place in the cell, ends the cell only."""
    if cell.optional_from is None:
        return False
    return _last_line(cell, place) >= cell.optional_from


def passed_over(program: Program, index: int, place: int, error: BaseException) -> list[CaptureRow]:
    """Say in the log that a cell has failed and the program goes on, and return a row of the report that does.

    There is nothing to say of a statement, by its place in the cell, that failed in the notebook, and fails again.
    """
    cell = program.cells[index]
    fails_again = cell.failed_line is not None and _last_line(cell, place) >= cell.failed_line
    if cell.optional_from != 1 or fails_again:
        return []
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    title = program.title(index)
    logger.warning("%s failed and is passed over, as the training needs nothing of it: %s", title, text)
    note = f"failed there, and the training needs nothing of it: {text}"
    number = program.cells[index].number
    return [CaptureRow(what=title, how="passed over", size=0, cell="" if number is None else f"[{number}]", note=note)]


def _last_line(cell: Cell, place: int) -> int:
    statement = ast.parse(cell.source).body[place]
    return statement.end_lineno or statement.lineno
