"""Where Python says that a call is made: the same line and column that a frame reports when it happens."""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Iterator

_Position = tuple[int | None, int | None, int | None, int | None]


def instruction_position(source: str, call: ast.Call) -> tuple[int, int]:
    """Return line and column of the instruction that makes a call.

    They differ from those of the expression where a chain of calls goes over several lines.

    Parameters
    ----------
    source : str
        The cell as Python.
    call : ast.Call
        A node of it.
    """
    end = call.end_lineno, call.end_col_offset
    code = compile(source, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    for name, (line, end_line, column, end_column) in _instructions(code):
        if line is not None and name.startswith("CALL") and (end_line, end_column) == end:
            return line, column or 0
    return call.lineno, call.col_offset


def _instructions(code: types.CodeType) -> Iterator[tuple[str, _Position]]:
    """Yield the names of instructions with their places. (``dis`` writes out constants, which may be far too long.)"""
    yield from zip((dis.opname[number] for number in code.co_code[::2]), code.co_positions(), strict=True)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
