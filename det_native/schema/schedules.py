"""Bodies of the routes under ``/schedules``, and when a schedule submits."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from det_native.schema.bodies import Answer, Sent
from det_native.schema.rest import ExperimentCreate

_EVERY = re.compile(r"(\d+)\s*(min|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# The fields of a line of cron: what each is, its smallest and largest number, and words for numbers.
_CRON: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ("last",)),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _WEEKDAYS),
)
_CRON_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_EXAMPLE = 'write "30min", "12h", "1d" or a line of cron such as "0 3 * * *"'


def interval_of(text: str) -> timedelta | None:
    """Return the time between two submissions of ``every``; None if it is a line of cron.

    Raises
    ------
    ValueError
        If it is neither.
    """
    match = _EVERY.fullmatch(text.strip())
    if match is not None:
        if not 0 < int(match[1]) <= 10_000:
            raise ValueError(f"{text!r} is no time between two submissions: {_EXAMPLE}")
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2].lower()])
    fields = text.lower().split()
    if len(fields) == len(_CRON):
        for field, (what, least, most, words) in zip(fields, _CRON, strict=True):
            if not all(_is_of_cron(part, least, most, words) for part in field.split(",")):
                raise ValueError(f"{text!r} is no line of cron, for {field!r} is no {what}: {_EXAMPLE}")
        return None
    raise ValueError(f"{text!r} is no time between two submissions: {_EXAMPLE}")


def _is_of_cron(part: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    match = _CRON_PART.fullmatch(part)
    if match is None:
        return False
    ends = [end for end in (match[1], match[2]) if end is not None and end not in words]
    return all(end.isdecimal() and least <= int(end) <= most for end in ends) and int(match[3] or 1) in range(
        1, most - least + 1
    )


class Timing(Sent):
    """When a schedule submits: once, or again and again.

    Attributes
    ----------
    at : datetime or None
        Once, then; a time without an offset is one of `timezone`.
    every : str or None
        ``30min``, ``12h``, ``1d``, ``2w``, or five fields of cron.
    timezone : str or None
        In which cron counts, such as ``Europe/Zurich``; that of the master by default.
    """

    at: datetime | None = None
    every: str | None = None
    timezone: str | None = None

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ZoneInfo(value)
            except (OSError, ValueError, KeyError):
                raise ValueError(f"{value!r} is no time zone; write one such as Europe/Zurich or UTC") from None
        return value

    @field_validator("every")
    @classmethod
    def _is_interval(cls, value: str | None) -> str | None:
        if value is not None:
            interval_of(value)
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.at is None) == (self.every is None):
            raise ValueError("needs one of at and every: when to submit")
        return self

    @property
    def text(self) -> str:
        """How people read it."""
        zone = f" ({self.timezone})" if self.timezone else ""
        return (
            f"at {self.at.isoformat(timespec='minutes')}{zone}" if self.at is not None else f"every {self.every}{zone}"
        )


class ScheduleCreate(Sent):
    """Body of ``POST /schedules``; `overlap` lets it submit while its last experiment goes on."""

    name: str = Field(default="", max_length=200)
    timing: Timing
    body: ExperimentCreate
    overlap: bool = False


class Schedule(Answer):
    """Experiments that are submitted at a time, or again and again.

    Attributes
    ----------
    state : str
        ACTIVE, PAUSED, COMPLETED (it submits nothing more) or CANCELED.
    next : str or None
        When it submits next.
    submitted : int
        How many experiments it has submitted.
    last_experiment : int or None
    error : str
        Why the last time nothing was submitted; empty if something was.
    config : dict
        Of the experiments.
    """

    id: int
    name: str
    state: str
    timing: Timing
    overlap: bool = False
    next: str | None
    submitted: int
    last_experiment: int | None
    error: str
    created: str
    ended: str | None
    config: dict[str, Any]


def utc(moment: datetime) -> str:
    """Return a time as it is stored."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
