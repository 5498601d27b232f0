"""Moments of these days, and other values that each process has its own of."""

from __future__ import annotations

import datetime
import os
import time
import uuid
from typing import Any

_DAY = 86_400.0
_LEAST_CLOCK = 600.0  # of a stopwatch; fewer seconds may be a setting
#: How long ago a program may have read a clock.
_DAYS = 60
# How dates are written, as digits.
_DATES = ("%Y%m%d", "%y%m%d", "%d%m%Y", "%m%d%Y", "%d%m%y", "%m%d%y")
_PER_SECOND = (1.0, 1e3, 1e6, 1e9)


def is_own_value(value: Any) -> bool:
    """Whether a number or a moment is this process's own, so that another process is right to have another one."""
    if isinstance(value, datetime.datetime):
        try:
            return _is_recent(value.timestamp())
        except (OverflowError, ValueError, OSError):
            return False
    if isinstance(value, datetime.date):
        return -_DAYS <= (value - datetime.date.today()).days <= 1
    if type(value) in (int, float):
        is_of_stopwatch = type(value) is float and value > _LEAST_CLOCK and not value.is_integer()
        if is_of_stopwatch and abs(value - time.perf_counter()) < _DAY:
            return True
        return value in (os.getpid(), os.getppid()) or any(_is_recent(value / unit) for unit in _PER_SECOND)
    return isinstance(value, uuid.UUID)


def _is_recent(seconds: float) -> bool:
    return -_DAYS * _DAY <= seconds - time.time() <= _DAY


def recent_dates() -> set[str]:
    """Return the days on which this process may have run, and tomorrow, as digits."""
    days = [datetime.date.today() + datetime.timedelta(days=place) for place in range(-_DAYS, 2)]
    return {day.strftime(form) for day in days for form in _DATES}
