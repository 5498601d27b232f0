"""Moments of this process, and other numbers that each process has its own of."""

from __future__ import annotations

import datetime
import functools
import os
import time
import uuid
from typing import Any

_DAY = 86_400.0
# How dates are written, as digits.
_DATES = ("%Y%m%d", "%y%m%d", "%d%m%Y", "%m%d%Y", "%d%m%y", "%m%d%y")
_MOST_DAYS = 60
_PER_SECOND = (1.0, 1e3, 1e6, 1e9)


def is_own_value(value: Any) -> bool:
    """Whether a number or a moment is this process's own, so that another process is right to have another one."""
    if isinstance(value, datetime.date):
        return _is_moment(value)
    if type(value) in (int, float):
        return value in (os.getpid(), os.getppid()) or _is_time(value)
    return isinstance(value, uuid.UUID)


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
