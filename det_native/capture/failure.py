"""What of a failed cell runs again: as far as and with the statement that failed, which fails again. Pure."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Divided(NamedTuple):
    """The text of a failed cell: what of it runs again, and what stands before the statement that failed."""

    again: str
    head: str


def divide(source: str, line: int, *, refused: bool = False) -> Divided:
    """Divide the text of a cell that failed at a line.

    Parameters
    ----------
    refused : bool
        det_native refused a call, which did nothing then: a statement of that call alone need not fail again.
    """
    body = ast.parse(source).body
    failed = next((one for one in body if (one.end_lineno or one.lineno) >= line), None)
    if failed is None:
        return Divided("", "")
    begin, end = _first_line(failed), failed.end_lineno or failed.lineno
    group = [one for one in body if _first_line(one) <= end and (one.end_lineno or one.lineno) >= begin]
    begin, end = min(map(_first_line, group)), max(one.end_lineno or one.lineno for one in group)
    lines = source.splitlines(keepends=True)
    head = "".join(lines[: begin - 1])
    head = head if any(not isinstance(one, ast.Pass) for one in ast.parse(head).body) else ""
    is_call = len(group) == 1 and isinstance(failed, ast.Expr | ast.Assign | ast.AnnAssign)
    if begin > line or (refused and is_call):
        return Divided(head, head)
    return Divided("".join(lines[:end]), head)


def until(source: str, line: int) -> str:
    """Return a text as far as and with the statement at a line."""
    return divide(source, line).again


def before(source: str, line: int) -> str:
    """Return the statements of a text that end before a line."""
    kept = [one for one in ast.parse(source).body if (one.end_lineno or one.lineno) < line]
    return ast.unparse(ast.Module(kept, []))


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])
