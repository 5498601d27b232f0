"""When a notebook is run, from the options ``--at`` and ``--every``."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from det_native.errors import ArgumentError
from det_native.schema.schedules import Timing


def timing_of(at: str | None, every: str | None, timezone: str | None, now: datetime | None = None) -> Timing:
    """Return when to run a notebook.

    Raises
    ------
    ArgumentError
        If it is no time.
    """
    if at is not None and every is not None:
        raise ArgumentError("--at and --every exclude each other.")
    try:
        if at is None:
            return Timing(every=every, timezone=timezone)
        Timing(every="1h", timezone=timezone)  # the zone is one
        return Timing(at=_moment(at, timezone, now), timezone=timezone)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ArgumentError(f"{first['msg'].removeprefix('Value error, ')}.") from error


def _moment(text: str, timezone: str | None, now: datetime | None) -> datetime:
    zone = ZoneInfo(timezone) if timezone else None
    present = (now or datetime.now().astimezone()).astimezone(zone)
    try:
        if len(text.strip()) <= len("00:00"):
            hour, _, minute = text.strip().partition(":")
            moment = present.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
            return moment if moment > present else moment + timedelta(days=1)
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentError(f'--at: {text!r} is no time; write "22:00" or "2030-01-31 03:00".') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()
    if moment <= present:
        raise ArgumentError(f"--at: {text!r} has passed; it is {present.isoformat(timespec='minutes')}.")
    return moment
