"""Where the snapshot of a training call begins: the notebook's names and the variables of the functions around it."""

from __future__ import annotations

import sys
from types import CellType, FrameType, FunctionType
from typing import Any

from det_native.heap.ownership import is_users_module

#: What the code around a loop is called, as a function.
LOOP = "the loop"


def roots_of_call(frame: FrameType | None = None) -> tuple[dict[str, Any], list[FrameType]]:
    """Return the names of the program, and the frames of the user's functions around a call, the outermost first.

    Frames of libraries and of this package are passed over; in a thread they are those of the thread's functions.

    Parameters
    ----------
    frame : frame, optional
        Where to start looking outwards; the caller's frame by default.
    """
    around: list[FrameType] = []
    current: FrameType | None = frame if frame is not None else sys._getframe(1)
    while current is not None:
        around.append(current)
        current = current.f_back
    # In a thread the program need not be that of the process.
    programs = (outer.f_globals for outer in around if outer.f_globals.get("__name__") == "__main__")
    namespace = next(programs, vars(sys.modules["__main__"]))
    frames: list[FrameType] = []
    for outer in around:
        if outer.f_locals is namespace:
            break
        name = outer.f_globals.get("__name__")
        users = isinstance(name, str) and name != "__main__" and is_users_module(name)
        if users or outer.f_globals is namespace:
            frames.append(outer)
    return namespace, frames[::-1]


def running_loop() -> FunctionType | None:
    """Return the innermost code of the user's that runs, as a function that is not for running; None if none does.

    What its body reads is read by the training.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users_module(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    if frame is None:
        return None
    variables = frame.f_locals
    names = frame.f_code.co_freevars
    cells = tuple(CellType(variables[name]) if name in variables else CellType() for name in names)
    function = FunctionType(frame.f_code, frame.f_globals, None, None, cells)
    function.__qualname__ = LOOP
    return function
