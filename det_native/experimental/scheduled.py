"""A document that is submitted by a schedule: in the place of an experiment, the master gets the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from det_native.client.session import Session
    from det_native.schema import rest

_wanted: Mapping[str, Any] | None = None


class Scheduled(BaseException):
    """The schedule is made; nothing was submitted."""

    def __init__(self, schedule: dict[str, Any]) -> None:
        super().__init__("scheduled")
        self.schedule = schedule


@contextmanager
def scheduling(wanted: Mapping[str, Any] | None) -> Iterator[None]:
    """Have the next experiment that is created in this process made a schedule; None: create it."""
    global _wanted
    _wanted = wanted
    try:
        yield
    finally:
        _wanted = None


def schedule_instead(session: Session, body: rest.ExperimentCreate) -> None:
    """Make the schedule that is wanted, if one is.

    Raises
    ------
    Scheduled
        It is made.
    """
    from det_native.schema import routes
    from det_native.schema.schedules import ScheduleCreate

    if _wanted is not None:
        # The master says what is wrong with the times.
        wanted = ScheduleCreate.model_construct(None, **_wanted, body=body)
        raise Scheduled(session.call(routes.CREATE_SCHEDULE, wanted).model_dump(mode="json"))
