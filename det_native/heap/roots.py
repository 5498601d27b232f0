"""Where the snapshot of a training call begins: the notebook's names and the variables of the functions around it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from det_native.heap.ownership import is_users_module


def roots_of_call(frame: FrameType | None = None) -> tuple[dict[str, Any], list[FrameType]]:
    """Return the names of the program, and the frames of the user's functions around a call.

    Parameters
    ----------
    frame : frame, optional
        Where to start looking outwards; the caller's frame by default.

    Returns
    -------
    namespace : dict
        Of ``__main__``: the notebook's names, or those of the program on a worker.
    frames : list of frame
        The outermost first; the cell or script itself, whose variables are the namespace, is not among them. Frames of
        libraries and of this package are passed over. In a thread they are those of the thread's functions.
    """
    namespace = vars(sys.modules["__main__"])
    frames: list[FrameType] = []
    current = frame if frame is not None else sys._getframe(1)
    while current is not None:
        if current.f_globals is namespace:
            if current.f_locals is namespace:
                break
            frames.append(current)
        else:
            name = current.f_globals.get("__name__")
            if isinstance(name, str) and name != "__main__" and is_users_module(name):
                frames.append(current)
        current = current.f_back  # type: ignore[assignment]
    return namespace, frames[::-1]
