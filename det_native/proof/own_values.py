"""Values that each process has its own of: moments, numbers of processes, temporary folders, names made at random."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import pathlib
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

#: Where the user's files are; empty where only the working directory is known.
_folder = ""
_DAY = 86_400.0
_LONGEST = 4_096  # characters; a longer text is data
_SHORTEST_NAME = 6  # of a folder among the temporary ones that is named without its place
_RANDOM_NAME = re.compile(r"(?i)(?<![0-9a-z])(?=[0-9a-f-]*[0-9])(?=[0-9a-f-]*[a-f])[0-9a-f][0-9a-f-]{7,}(?![0-9a-z])")
# How dates are written, as digits.
_DATES = ("%Y%m%d", "%y%m%d", "%d%m%Y", "%m%d%Y", "%d%m%y", "%m%d%y")
_DIGIT = re.compile(r"\d")
_DATED_NAME = re.compile(r"(?i)(?<![0-9a-z])[0-9a-f]{8,}(?![0-9a-z])")
_MOST_DAYS = 60
_PER_SECOND = (1.0, 1e3, 1e6, 1e9)


def is_own_value(value: Any) -> bool:
    """Whether a plain value is this process's own, so that another process is right to have another one.

    Parameters
    ----------
    value : object
        A number, a moment or a text. Of texts see also :func:`masked_text`.
    """
    if isinstance(value, bool):
        return False
    if isinstance(value, datetime.datetime | datetime.date):
        return _is_moment(value)
    if isinstance(value, uuid.UUID):
        return True
    if type(value) is int:
        return value in (os.getpid(), os.getppid(), threading.get_native_id(), *_threads()) or _is_time(value)
    return type(value) is float and _is_time(value)


def masked_text(text: str) -> str:
    """Return a text without what is this process's own: folders, user, host, moments, names made at random."""
    if len(text) > _LONGEST:
        return text
    for own, mark in _own_texts():
        text = text.replace(own, mark)
    if (
        os.sep not in text
        and len(text) >= _SHORTEST_NAME
        and os.path.lexists(os.path.join(tempfile.gettempdir(), text))
    ):
        return "<temporary>"
    temporary = text.find("<temporary>")
    if temporary >= 0:  # the folders and files in there have names made at random
        return text[:temporary] + "<temporary>"
    digits = "".join(_DIGIT.findall(text))
    if any(date in digits for date in dates_of_process()):
        return _DIGIT.sub("#", _RANDOM_NAME.sub("<random>", _DATED_NAME.sub("#", text)))
    return _RANDOM_NAME.sub("<random>", text)


def portable_text(text: str, *, masked: bool) -> str:
    """Return a text as another process has it: absolute paths without the folders that differ from machine to machine.

    Parameters
    ----------
    text : str
    masked : bool
        Leave out what is this process's own, too; see :func:`masked_text`.
    """
    relative = without_folder(text)
    if not masked or len(text) > _LONGEST:
        return relative
    if os.path.isabs(text) and relative == os.path.basename(text):  # it lies elsewhere: in a temporary folder, say
        own = masked_text(text)
        return own if own.startswith("<temporary>") else masked_text(relative)
    return masked_text(relative)


@contextlib.contextmanager
def relative_to(folder: pathlib.Path) -> Iterator[None]:
    """Have absolute paths be relative to the folder of the user's files in the block, wherever the code goes."""
    global _folder
    before, _folder = _folder, str(folder)
    try:
        yield
    finally:
        _folder = before


def without_folder(text: str) -> str:
    """Return an absolute path relative to the folder of the user's files, or its last part if it lies elsewhere."""
    if not os.path.isabs(text):
        return text
    of_files = (_folder, os.path.realpath(_folder)) if _folder else ()
    for folder in dict.fromkeys((*of_files, os.getcwd(), os.path.realpath(os.getcwd()))):
        if text == folder:
            return "."
        if text.startswith(folder + os.sep):
            return text[len(folder) + 1 :]
    return os.path.basename(text)


def is_path(value: Any) -> bool:
    """Whether a value is a path of ``pathlib``."""
    return isinstance(value, pathlib.PurePath)


def _threads() -> tuple[int, ...]:
    return tuple(thread.ident or 0 for thread in threading.enumerate())


def dates_of_process() -> set[str]:
    """Return the days on which this process has run, and those beside them, as digits."""
    today, age = datetime.date.today(), int(_age() // _DAY)
    days = [today + datetime.timedelta(days=place) for place in range(-min(age, _MOST_DAYS) - 1, 2)]
    return {day.strftime(form) for day in days for form in _DATES}


def _is_time(value: float) -> bool:
    """Whether a number was read from a clock in this process."""
    now, age = time.time(), _age()
    if any((now - age) <= value / unit <= now + _DAY for unit in _PER_SECOND):
        return True
    if isinstance(value, float) and value.is_integer():
        return False  # a setting
    clock = time.perf_counter()
    return any(clock - age <= value / unit <= clock for unit in ((1.0,) if isinstance(value, float) else (1e9,)))


def _is_moment(value: datetime.date) -> bool:
    if isinstance(value, datetime.datetime):
        try:
            return abs(value.timestamp() - time.time()) <= _age() + _DAY
        except (OverflowError, ValueError, OSError):
            return False
    return abs((value - datetime.date.today()).days) * _DAY <= _age() + _DAY


def _age() -> float:
    """Return for how many seconds this process has run."""
    return max(0.0, time.time() - _started()) + 1.0


@functools.cache
def _started() -> float:
    import psutil

    try:
        return float(psutil.Process().create_time())
    except psutil.Error:
        return time.time() - _DAY


@functools.cache
def _own_texts() -> tuple[tuple[str, str], ...]:
    """Return texts of this process, the longer ones first, each with what takes its place."""
    import getpass

    # What code writes as "/tmp" is temporary, too, wherever TMPDIR leads.
    folders = (tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir()), "/tmp")
    found = dict.fromkeys(folders, "<temporary>")
    found |= {os.path.expanduser("~"): "<home>", socket.gethostname(): "<host>"}
    with contextlib.suppress(KeyError, OSError, ImportError):  # a user without a name
        found[getpass.getuser()] = "<user>"
    kept = {text: mark for text, mark in found.items() if len(text) >= 3}
    return tuple(sorted(kept.items(), key=lambda pair: -len(pair[0])))
