"""What made a local run fail, as it is kept with the experiment: by cells and lines, as a worker tells it."""

from __future__ import annotations

import re
from traceback import TracebackException
from typing import Any

from det_native.capture.log import ExecutionLog, current_log
from det_native.errors import DivergedError, is_own, without_ours
from det_native.schema.own_message import own_message, with_advice
from det_native.schema.reports import UserErrorInfo

_FRAME = re.compile(r'File "([^"\n]+)", line')


def describe(error: BaseException, batch: int = 0) -> UserErrorInfo:
    """Return an exception of a local run as it is kept with the experiment.

    Parameters
    ----------
    batch : int
        The batch in which it was raised, counted from 1; 0 before the first one was done.
    """
    if isinstance(error, DivergedError):
        return UserErrorInfo(
            type=type(error).__name__, message=error.without_batch, traceback="", batch=error.batch or batch
        )
    notes = getattr(error, "__notes__", ())
    log = current_log()
    return UserErrorInfo(
        type=type(error).__name__,
        message=with_advice(own_message(error), " ".join(notes)) if notes else own_message(error),
        traceback=_text(error, log),
        batch=batch,
        **_place(error, log),
    )


def _text(error: BaseException, log: ExecutionLog | None) -> str:
    """Return the traceback in the user's code, cells by their numbers; empty where a message of ours says it all."""
    trace = without_ours(error.__traceback__)
    if trace is None:
        if is_own(error):
            return ""
        trace = error.__traceback__
    shown = TracebackException(type(error), error, trace)
    if is_own(error):
        shown.__cause__ = shown.__context__ = None

    def titled(found: re.Match[str]) -> str:
        owner = log.owner_of(found[1]) if log is not None else None
        if owner is None or log is None or owner.number is None:
            return found[0]
        return f"Cell [{owner.number}], line"

    return _FRAME.sub(titled, "".join(shown.format()))


def _place(error: BaseException, log: ExecutionLog | None) -> dict[str, Any]:
    """Return the cell of the innermost frame that is in one, and its line."""
    place: dict[str, Any] = {}
    trace = error.__traceback__ if log is not None else None
    while log is not None and trace is not None:
        owner = log.owner_of(trace.tb_frame.f_code.co_filename)
        if owner is not None and owner.number is not None:
            place = {"cell": owner.number, "line": trace.tb_lineno}
        trace = trace.tb_next
    return place
