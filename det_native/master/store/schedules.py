"""Schedules: what they submit, and when."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from det_native.errors import NotFoundError
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.user_tables import schedules
from det_native.schema.schedules import Schedule

ACTIVE, PAUSED, COMPLETED, CANCELED = "ACTIVE", "PAUSED", "COMPLETED", "CANCELED"


def add(transaction: Transaction, owner: str, name: str, timing: dict[str, Any], body: dict[str, Any], due: str) -> int:
    """Keep a schedule; return its id."""
    row = {"owner": owner, "name": name, "state": ACTIVE, "timing": timing, "body": body, "next": due, "created": now()}
    result = transaction.connection.execute(insert(schedules), row)
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def get(connection: Connection, owner: str, schedule_id: int) -> Schedule:
    """Return a schedule.

    Raises
    ------
    NotFoundError
        If there is none of that number.
    """
    query = select(schedules).where(schedules.c.owner == owner, schedules.c.id == schedule_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError(
            f"There is no schedule {schedule_id}; `det schedule list --all` shows those that there are."
        )
    return _schedule(row)


def listing(connection: Connection, owner: str, *, ended: bool) -> list[Schedule]:
    """Return the schedules that submit still, newest first; with `ended` the others too."""
    query = select(schedules).where(schedules.c.owner == owner).order_by(schedules.c.id.desc())
    if not ended:
        query = query.where(schedules.c.state.in_([ACTIVE, PAUSED]))
    return [_schedule(row) for row in connection.execute(query)]


def due(connection: Connection, owner: str, until: str) -> list[Schedule]:
    """Return the schedules whose time has come."""
    query = select(schedules).where(schedules.c.owner == owner, schedules.c.state == ACTIVE, schedules.c.next <= until)
    return [_schedule(row) for row in connection.execute(query.order_by(schedules.c.next, schedules.c.id))]


def next_due(connection: Connection, owner: str) -> str | None:
    """Return when the next one submits, None if none does."""
    query = select(func.min(schedules.c.next)).where(schedules.c.owner == owner, schedules.c.state == ACTIVE)
    found: str | None = connection.execute(query).scalar()
    return found


def body_of(connection: Connection, schedule_id: int) -> dict[str, Any]:
    """Return what a schedule submits."""
    found: dict[str, Any] = connection.execute(
        select(schedules.c.body).where(schedules.c.id == schedule_id)
    ).scalar_one()
    return found


def change(transaction: Transaction, schedule_id: int, **columns: Any) -> None:
    """Change a schedule."""
    transaction.connection.execute(update(schedules).where(schedules.c.id == schedule_id).values(**columns))


def _schedule(row: Any) -> Schedule:
    overlap = bool(row.timing.get("overlap"))
    timing = {name: value for name, value in row.timing.items() if name != "overlap"}
    names = ("id", "name", "state", "next", "submitted", "last_run", "error", "created", "ended")
    found = {name: getattr(row, name) for name in names}
    return Schedule.model_validate({**found, "timing": timing, "overlap": overlap, "path": row.body.get("path", "")})
