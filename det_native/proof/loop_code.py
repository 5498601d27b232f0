"""The code of a user's own loop, as a function: what its body reads is read by the training."""

from __future__ import annotations

import dis
import sys
import types

from det_native.inspection.attributes import is_own_module

#: The name of such a function. The loop's own code is not compared: its cell is sent as it is.
LOOP = "the loop"


def running_loop() -> types.FunctionType | None:
    """Return the innermost code of the user's that runs, as a function; None if none does."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_own_module(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    variables = frame.f_locals
    cells = tuple(
        types.CellType(variables[name]) if name in variables else types.CellType() for name in code.co_freevars
    )
    return types.FunctionType(code, frame.f_globals, LOOP, None, cells)


def bound_by(code: types.CodeType) -> frozenset[str]:
    """Return the names that code at the top level of a cell binds."""
    return frozenset(each.argval for each in dis.get_instructions(code) if each.opname == "STORE_NAME")
