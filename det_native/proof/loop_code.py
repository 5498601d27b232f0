"""The code of a user's own loop, as a function: what its body reads is read by the training."""

from __future__ import annotations

import dis
import inspect
import sys
import types

from det_native.heap.ownership import is_users_module

#: The name of such a function. The loop's own code is not compared: its cell is sent as it is.
LOOP = "the loop"

_ENDS_STATEMENT = ("STORE_", "DELETE_", "POP_", "RETURN_", "JUMP_", "RESUME", "END_FOR")


def running_loop() -> types.FunctionType | None:
    """Return the innermost code of the user's that runs, as a function that is not for running; None if none does.

    Of a cell it has only the loop: IPython compiles a cell statement by statement, but under ``%%time`` in one piece.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_users_module(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        code = part_around(code, frame.f_lasti)
    variables = frame.f_locals
    cells = tuple(
        types.CellType(variables[name]) if name in variables else types.CellType() for name in code.co_freevars
    )
    return types.FunctionType(code, frame.f_globals, LOOP, None, cells)


def bound_by(code: types.CodeType) -> frozenset[str]:
    """Return the names that code at the top level of a cell binds."""
    return frozenset(each.argval for each in dis.get_instructions(code) if each.opname == "STORE_NAME")


def part_around(code: types.CodeType, position: int) -> types.CodeType:
    """Return only the outermost ``for`` loop around a position in bytecode, or the one whose iterable is made there.

    Without a loop it is what the statement does around the position. The result is for reading, not for running.
    """
    instructions = list(dis.get_instructions(code))
    place = max(index for index, each in enumerate(instructions) if each.offset <= position)
    index_at = {each.offset: index for index, each in enumerate(instructions)}
    first, last = _first_of_expression(instructions, place), place
    while last < len(instructions) - 1 and not _ends_statement(instructions[last]):
        if instructions[last].opname == "FOR_ITER":
            last = index_at.get(instructions[last].argval, len(instructions)) - 1
            break
        last += 1
    for index, each in enumerate(instructions):
        if each.opname == "FOR_ITER":
            end = index_at.get(each.argval, len(instructions))
            start = _first_of_expression(instructions, index)
            if start < first and place < end:
                first, last = start, max(last, end - 1)
    part = instructions[first : last + 1]
    stop = instructions[last + 1].offset if last + 1 < len(instructions) else len(code.co_code)
    inner = {id(each.argval) for each in part if isinstance(each.argval, types.CodeType)}
    constants = tuple(
        None if isinstance(constant, types.CodeType) and id(constant) not in inner else constant
        for constant in code.co_consts
    )
    return code.replace(co_code=code.co_code[part[0].offset : stop], co_consts=constants, co_exceptiontable=b"")


def _first_of_expression(instructions: list[dis.Instruction], place: int) -> int:
    while place and not _ends_statement(instructions[place - 1]):
        place -= 1
    return place


def _ends_statement(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith(_ENDS_STATEMENT)
