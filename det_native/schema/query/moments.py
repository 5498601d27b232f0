"""Times and durations in queries: ``2026-11-01``, ``2026-11-01T10:30``, ``7d``, ``1h30m``. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MINUTE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?")
_LONGEST = 10**10  # seconds, some three hundred years


def seconds_of(text: str) -> float | None:
    """Return the length of a duration in seconds; None if it is none. A number alone is in seconds."""
    if _NUMBER.fullmatch(text):
        return min(float(text), _LONGEST)
    if not _DURATION.fullmatch(text):
        return None
    return min(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)), _LONGEST)


def span_of(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the first moment of what a text names and the first one after it; None if it names none.

    A date is a day, a time without seconds a minute. An age is one moment. Without a zone it is UTC.
    """
    if _DURATION.fullmatch(text):
        try:
            moment = now - timedelta(seconds=seconds_of(text) or 0)
        except OverflowError:
            moment = datetime.min.replace(tzinfo=UTC)
        return moment, moment
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        return None
    start = start.replace(tzinfo=UTC) if start.tzinfo is None else start
    long = timedelta(days=1) if _DATE.fullmatch(text) else timedelta(minutes=1) if _MINUTE.fullmatch(text) else None
    try:
        return start.astimezone(UTC), (start + (long or timedelta(0))).astimezone(UTC)
    except OverflowError:
        return None


def stored(moment: datetime) -> str:
    """Return a moment as the store has it, ISO 8601 in UTC to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds_between(begin: str, end: str) -> int:
    """Return how long it is between two stored moments."""
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() * 1000)
