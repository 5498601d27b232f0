"""Bodies of the routes under ``/schedules``, and when a schedule runs its notebook."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from det_native.schema.bodies import Answer, Sent
from det_native.schema.notebook_runs import RunRequest

_EVERY = re.compile(r"(\d+)\s*(min|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_CRON_FIELDS = 5
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
    if len(text.split()) == _CRON_FIELDS:
        return None
    raise ValueError(f"{text!r} is no time between two submissions: {_EXAMPLE}")


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
    """Body of ``POST /schedules``; `overlap` lets it run the notebook while its last run goes on."""

    name: str = Field(default="", max_length=200)
    timing: Timing
    request: RunRequest
    overlap: bool = False


class Schedule(Answer):
    """A notebook that is run at a time, or again and again.

    Attributes
    ----------
    state : str
        ACTIVE, PAUSED, COMPLETED (it begins nothing more) or CANCELED.
    next : str or None
        When it begins the next run.
    submitted : int
        How many runs it has begun.
    last_run : int or None
        Number of its last notebook run.
    last_outcome : str
        How that stands or has ended, with the cell that failed; empty if it is not there any more.
    error : str
        Why no run began the last time; empty if one did.
    path : str
        Of the notebook.
    """

    id: int
    name: str
    state: str
    timing: Timing
    overlap: bool = False
    next: str | None
    submitted: int
    last_run: int | None
    last_outcome: str = ""
    error: str
    created: str
    ended: str | None
    path: str = ""
