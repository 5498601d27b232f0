"""Where in the user's program a call was made: found the same way by the capture and by the worker's replay."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Generic, TypeVar

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class Position(Generic[Unit]):
    """A place in the user's program.

    Attributes
    ----------
    unit
        What `resolve` made of the file name: a cell or a file.
    line : int
        Line within the unit, from 1.
    column : int
        Column of the call expression, from 0.
    """

    unit: Unit
    line: int
    column: int


def calling_position(resolve: Callable[[str], Unit | None], frame: FrameType | None = None) -> Position[Unit] | None:
    """Return the position of the innermost frame that belongs to the user's program.

    Parameters
    ----------
    resolve : callable
        Maps the file name of a code object to the unit of the program it belongs to, or None for foreign code.
    frame : frame, optional
        Where to start looking outwards; the caller's frame by default.
    """
    current = frame if frame is not None else sys._getframe(1)
    while current is not None:
        unit = resolve(current.f_code.co_filename)
        if unit is not None:
            line, column = _instruction_position(current)
            return Position(unit, line, column)
        current = current.f_back  # type: ignore[assignment]
    return None


def _instruction_position(frame: FrameType) -> tuple[int, int]:
    positions = list(frame.f_code.co_positions())
    line, _, column, _ = positions[frame.f_lasti // 2]
    return (line if line is not None else frame.f_lineno), (column if column is not None else 0)
