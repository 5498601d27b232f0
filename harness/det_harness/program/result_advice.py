"""What to do about an error that a result of another training call has caused, which does not train in this run."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from types import FrameType

from det_harness.program.calls import ProgramSource
from det_harness.program.null_handle import NOT_TRAINED, NullHandle, is_whole_result


def result_advice(error: BaseException, source: ProgramSource) -> str | None:
    """Return what to do, None if the message of an error does not name such a result.

    Parameters
    ----------
    error : BaseException
        Of the program: ``batch_size must be a whole number, not <the training call at cell [4] ...>``.
    source : ProgramSource
        Says which frames are the user's.
    """
    text = str(error)
    if NOT_TRAINED not in text and NullHandle.__name__ not in text:
        return None
    own = [(frame, line) for frame, line in _frames(error) if source.resolve(frame.f_code.co_filename) is not None]
    held = _results_in(*own[-1]) if own else {}
    derived = [name for name, value in held.items() if not is_whole_result(value)]
    if derived:
        listed = ", ".join(f'"{name}"' for name in derived)
        return f"Send what your notebook had there: values=[{listed}] in init()."
    whole = " and ".join(f"`{name}`" for name in held) or "that result"
    return (
        f"Give what you take of {whole} a name in a cell of its own (`best = ...`), and send its value: "
        'values=["best"] in init().'
    )


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _results_in(frame: FrameType, line: int) -> dict[str, NullHandle]:
    """Return the results that variables of the line hold, by their names in its order."""
    known = {**frame.f_globals, **frame.f_locals}
    found: dict[str, NullHandle] = {}
    for name in re.findall(r"[^\W\d]\w*", linecache.getline(frame.f_code.co_filename, line)):
        value = known.get(name)
        if isinstance(value, NullHandle):
            found[name] = value
    return found
