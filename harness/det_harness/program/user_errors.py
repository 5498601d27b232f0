"""Exceptions of the user's code as text: the user's frames by cell and line, everybody else's collapsed."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType

from det_harness.program.calls import ProgramSource, Unit
from det_harness.program.made_up import SCRIPT_REMEDY
from det_harness.program.null_handle import NOT_TRAINED, NullHandle
from det_native.heap.unknown_argument import argument_advice
from det_native.schema.environment import TrialEnvironment
from det_native.schema.own_message import is_out_of_memory, memory_advice, own_message, with_advice
from det_native.schema.reports import UserErrorInfo

_LONGEST = 20_000
#: Characters of one message in a traceback: of more than one there is room, and for the frames.
_LONGEST_MESSAGE = 5_000


def describe(error: BaseException, source: ProgramSource, batch: int = 0) -> UserErrorInfo:
    """Describe an exception of the user's code.

    Parameters
    ----------
    batch : int
        The batch, counted from 1, in which it was raised; 0 before training.

    Returns
    -------
    UserErrorInfo
        With its last own message, the innermost place in the user's code, and a traceback of the user's frames only. If
        no frame is the user's, all frames are shown. A long traceback, or a long message in it, lacks its middle.
    """
    unit, line = _innermost(_of_user(error, source) or error, source)
    message = own_message(error)
    return UserErrorInfo(
        type=type(error).__name__,
        message=message[:_LONGEST],
        traceback=_without_middle("\n".join(_chain(error, source))),
        cell=source.number(unit) if unit else None,
        file=unit.file if unit else None,
        line=line,
        batch=batch,
    )


def advised(
    info: UserErrorInfo, error: BaseException, environment: TrialEnvironment, source: ProgramSource
) -> UserErrorInfo:
    """Return the description of an exception with what to do about it, where that can be said.

    That is where memory ran out, a library does not take an argument, or a result of another training call was used,
    which does not train in this run.
    """
    if is_out_of_memory(error):
        advice: str | None = memory_advice(environment.batch_size, environment.slots)
    else:
        advice = argument_advice(error) or _result_advice(error, script=source.program.kind == "script")
    if advice is None:
        return info
    message = with_advice(info.message, advice)
    return info.model_copy(update={"message": message, "traceback": f"{info.traceback}\n{advice}"})


def raised_by_user(error: BaseException, source: ProgramSource) -> bool:
    """Return whether the user's code raised an exception, or what it called outside of the harness.

    The training itself runs under the user's call of it; what fails there is not the user's. So the innermost frame of
    the user's must not have called the harness. What came of an exception of the user's is the user's too.
    """
    return _of_user(error, source) is not None


def _of_user(error: BaseException, source: ProgramSource) -> BaseException | None:
    """Return the exception itself, or that of which it came, if it was raised in the user's code."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        if _ends_in_users_code(current.__traceback__, source):
            return current
        seen.add(id(current))
        current = current.__cause__
    return None


def _ends_in_users_code(traceback: TracebackType | None, source: ProgramSource) -> bool:
    theirs = False
    for frame, _ in _frames(traceback):
        if source.resolve(frame.f_code.co_filename) is not None:
            theirs = True
        elif _package(frame) == "det_harness":
            theirs = False
    return theirs


def _innermost(error: BaseException, source: ProgramSource) -> tuple[Unit | None, int | None]:
    if isinstance(error, SyntaxError) and error.filename is not None:
        unit = source.resolve(error.filename)
        if unit is not None:
            return unit, error.lineno
    place: tuple[Unit | None, int | None] = (None, None)
    for frame, line in _frames(error.__traceback__):
        unit = source.resolve(frame.f_code.co_filename)
        if unit is not None:
            place = (unit, line)
    return place


def _chain(error: BaseException, source: ProgramSource) -> Iterator[str]:
    """Yield the lines of an exception and of those that led to it, oldest first."""
    seen: set[int] = set()
    parts: list[tuple[BaseException, str]] = []
    current: BaseException | None = error
    link = ""
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        parts.append((current, link))
        if current.__cause__ is not None:
            current, link = current.__cause__, "The above exception was the direct cause of the following exception:"
        elif current.__context__ is not None and not current.__suppress_context__:
            current, link = current.__context__, "During handling of the above exception, another exception occurred:"
        else:
            current = None
    for position, (part, _) in enumerate(reversed(parts)):
        if position:
            yield from ("", parts[len(parts) - position][1], "")
        yield from _one(part, source)


def _one(error: BaseException, source: ProgramSource) -> Iterator[str]:
    yield "Traceback (most recent call last):"
    frames = list(_frames(error.__traceback__))
    if any(source.resolve(frame.f_code.co_filename) for frame, _ in frames):
        yield from _user_frames(frames, source)
    else:
        for frame, line in frames:
            yield f"  File {frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}"
            yield from _source_line(frame, line)
    if isinstance(error, SyntaxError):
        yield from _syntax_place(error, source)
        yield _shortened(f"{type(error).__name__}: {error.msg}")
        return
    yield _shortened("".join(traceback.format_exception_only(type(error), error)).rstrip("\n"))


def _shortened(text: str) -> str:
    """Return a message without the middle of a long one: what was wrong may stand at its end."""
    left_out = len(text) - _LONGEST_MESSAGE
    if left_out <= 0:
        return text
    half = _LONGEST_MESSAGE // 2
    return f"{text[:half]}\n[{left_out} more characters]\n{text[-half:]}"


def _without_middle(text: str) -> str:
    """Return a traceback without the middle of a long one: where it began, and what came of it, say the most."""
    if len(text) <= _LONGEST:
        return text
    half = (_LONGEST - 100) // 2
    first = text[:half].rpartition("\n")[0] or text[:half]
    last = text[-half:].partition("\n")[2]
    left_out = text.count("\n") - first.count("\n") - last.count("\n") - 1
    return f"{first}\n  [{left_out} lines left out]\n{last}"


def _user_frames(frames: list[tuple[FrameType, int]], source: ProgramSource) -> Iterator[str]:
    """Yield the user's frames; runs of other frames between and after them as one line each."""
    hidden: list[str] = []
    reached = False
    for frame, line in frames:
        unit = source.resolve(frame.f_code.co_filename)
        if unit is None:
            hidden.append(_package(frame))
            continue
        if hidden and reached:
            yield _collapsed(hidden)
        hidden, reached = [], True
        title = source.title(unit)
        name = frame.f_code.co_name
        where = "" if name == "<module>" else f", in {name}"
        yield (
            f"  {title[0].upper()}{title[1:]}, line {line}{where}"
            if unit.cell is not None
            else (f"  File {title}, line {line}{where}")
        )
        yield from _source_line(frame, line)
    if hidden:
        yield _collapsed(hidden)


def _collapsed(packages: list[str]) -> str:
    names = ", ".join(dict.fromkeys(packages))
    return f"  [{len(packages)} frame{'s' if len(packages) > 1 else ''} of {names}]"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__") or "unknown code").partition(".")[0]


def _source_line(frame: FrameType, line: int) -> Iterator[str]:
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
    if text:
        yield f"    {text}"


def _syntax_place(error: SyntaxError, source: ProgramSource) -> Iterator[str]:
    unit = source.resolve(error.filename) if error.filename else None
    title = source.title(unit) if unit is not None else (error.filename or "unknown code")
    yield f"  {title[0].upper()}{title[1:]}, line {error.lineno}"
    if error.text:
        yield f"    {error.text.strip()}"


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _result_advice(error: BaseException, *, script: bool) -> str | None:
    """Return what to do about an error of the program that names such a result; None where it names none."""
    if NOT_TRAINED not in str(error) and NullHandle.__name__ not in str(error):
        return None
    if script:
        return f"{SCRIPT_REMEDY[0].upper()}{SCRIPT_REMEDY[1:]}"
    return (
        "Give what you take of that result a name in a cell of its own (`best = ...`), and send its value: "
        'values=["best"] in init() or create().'
    )
