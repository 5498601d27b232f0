"""Where in the user's program a call was made: found the same way by the capture and by the worker's replay."""

from __future__ import annotations

import ast
import dis
import gc
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
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


# What a frame stands at while it lets go of a loop's iterator without an exception, and when it has ended without one.
# Only such as cannot raise: assigning to a name lets go of what the name held, assigning to an item may fail.
_NAMES = ("FAST", "NAME", "GLOBAL", "DEREF")
_LETTING_GO = ("POP_TOP", "POP_ITER", "END_FOR", *(f"{what}_{kind}" for what in ("STORE", "DELETE") for kind in _NAMES))
_ENDED = ("RETURN_VALUE", "RETURN_CONST")


def asking_frame() -> FrameType | None:
    """Return the frame of the user's loop that asks an iterator of ours for an element.

    Frames of ours, and generators around the iterator (a progress bar, say), are passed over.
    """
    current: FrameType | None = sys._getframe(1)
    while current is not None:
        ours = current.f_globals.get("__name__", "").startswith(("det_native.", "det_harness.", "contextlib"))
        if not ours and not current.f_code.co_flags & inspect.CO_GENERATOR:
            return current
        current = current.f_back
    return None


def left_on_purpose(frame: FrameType | None) -> bool:
    """Return whether the loop of `frame`, whose iterator is being closed, was left without an exception.

    It was by ``break`` or ``return``, or because an iterator around ours has ended (``zip``, ``islice``). An exception
    in the body of a loop closes the loop's iterator too, before anybody can see that exception: the instruction that
    the frame stands at, or has ended with, tells them apart, and the traceback that the exception is making.
    """
    if frame is None:
        return False
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    running: FrameType | None = sys._getframe(1)
    while running is not None and running is not frame:
        running = running.f_back
    if running is None:
        return instruction in _ENDED
    if instruction in _LETTING_GO:
        return True
    return instruction != "RERAISE" and not _raises(frame, in_calls=instruction != "FOR_ITER")


def runs_after_loop(frame: FrameType) -> str:
    """Return a warning where the notebook runs code after a loop of `frame` that plain code would not; else empty.

    The notebook has no elements for its loop: it cannot know that ``break`` or ``return`` has left it on the worker.
    """
    line = frame.f_lineno
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return ""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    if any(isinstance(node, ast.Return) and _have_line([node], line) for node in nodes):
        return (
            f"`return` in line {line} has left the loop on the worker. In the notebook the function goes on after the "
            "loop: use `break`, and return what is needed after it."
        )
    loops = [node for node in nodes if isinstance(node, ast.For | ast.While) and _have_line(node.body, line)]
    if not loops or not max(loops, key=lambda loop: loop.lineno).orelse:
        return ""
    return (
        f"`break` in line {line} has left the loop on the worker. In the notebook the loop's `else` block runs as "
        "well: set a variable before `break`, and test it after the loop."
    )


def _have_line(statements: list[ast.stmt], line: int) -> bool:
    return statements[0].lineno <= line <= (statements[-1].end_lineno or 0)


def place_in(frame: FrameType) -> tuple[CodeType, int]:
    """Return the place that a frame stands at, for :func:`came_through`."""
    return frame.f_code, frame.f_lasti


def came_through(error: BaseException, place: tuple[CodeType, int]) -> bool:
    """Return whether an exception was raised at, or came through, a place that a frame stood at."""
    trace = error.__traceback__
    while trace is not None:
        if (trace.tb_frame.f_code, trace.tb_lasti) == place:
            return True
        trace = trace.tb_next
    return False


def _raises(frame: FrameType, *, in_calls: bool) -> bool:
    """Return whether an exception is on its way through a running frame: its traceback holds the frame.

    Parameters
    ----------
    frame : FrameType
    in_calls : bool
        Look into the calls that the frame has made too: what a call was given is let go before the frame is in the
        traceback. An exception of C code alone, as in ``list(map(int, batches))``, leaves no trace there.
    """
    for holder in gc.get_referrers(frame):
        if isinstance(holder, TracebackType) and holder.tb_lasti == frame.f_lasti:
            return True
        if in_calls and isinstance(holder, FrameType) and holder.f_back is frame:
            return any(isinstance(one, TracebackType) for one in gc.get_referrers(holder))
    return False
