"""Where Python says that a call is made: the same line and column that a frame reports when it happens."""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Iterator


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
    for instruction in _instructions(code):
        place = instruction.positions
        if place is None or place.lineno is None or not instruction.opname.startswith("CALL"):
            continue
        if (place.end_lineno, place.end_col_offset) == end:
            return place.lineno, place.col_offset or 0
    return call.lineno, call.col_offset


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
