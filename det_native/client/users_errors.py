"""Exceptions of the code in a directory, as the command line shows them."""

from __future__ import annotations

import traceback
from pathlib import Path


def users_traceback(error: BaseException, directory: Path) -> str | None:
    """Return an exception with its traceback, from the first line on that is in a directory.

    What led there, the command itself and the import system, says nothing to its reader. None if no line of the
    directory has a part in it.
    """
    inside = directory.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    own = [_is_in(frame.filename, inside) for frame in frames]
    if not any(own) and not (isinstance(error, SyntaxError) and _is_in(error.filename, inside)):
        return None
    lines = traceback.format_list(frames[own.index(True) :]) if any(own) else []
    head = ["Traceback (most recent call last):\n"] if lines else []
    return "".join([*head, *lines, *traceback.format_exception_only(error)]).rstrip("\n")


def _is_in(filename: str | None, directory: Path) -> bool:
    return filename is not None and Path(filename).resolve().is_relative_to(directory)
