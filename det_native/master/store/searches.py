"""What the searchers of experiments know: a snapshot from time to time, and the events that they were told since."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from det_native.master.store.database import Transaction
from det_native.master.store.tables import experiments, search_events

_SNAPSHOT = select(experiments.c.searcher).where(experiments.c.id == bindparam("experiment"))
_EVENTS = (
    select(search_events.c.event)
    .where(search_events.c.experiment_id == bindparam("experiment"))
    .order_by(search_events.c.number)
)
_KEEP = insert(search_events)
_FORGET = delete(search_events).where(search_events.c.experiment_id == bindparam("experiment"))
_REPLACE = (
    update(experiments)
    .where(experiments.c.id == bindparam("experiment"))
    .values(searcher=bindparam("snapshot", type_=experiments.c.searcher.type))
)


def known(connection: Connection, experiment_id: int) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the last snapshot, None if there is none yet, and the events after it, in order."""
    values = {"experiment": experiment_id}
    snapshot: dict[str, Any] | None = connection.execute(_SNAPSHOT, values).scalar()
    return snapshot, list(connection.execute(_EVENTS, values).scalars())


def keep_event(transaction: Transaction, experiment_id: int, number: int, event: dict[str, Any]) -> None:
    """Keep an event, the `number`-th since the last snapshot."""
    transaction.connection.execute(_KEEP, {"experiment_id": experiment_id, "number": number, "event": event})


def keep_snapshot(transaction: Transaction, experiment_id: int, snapshot: dict[str, Any]) -> None:
    """Keep a snapshot, which takes the place of all before."""
    transaction.connection.execute(_FORGET, {"experiment": experiment_id})
    transaction.connection.execute(_REPLACE, {"experiment": experiment_id, "snapshot": snapshot})


def begin_anew(transaction: Transaction, experiment_id: int) -> None:
    """Forget all that a searcher was told, and what it made of that."""
    transaction.connection.execute(_FORGET, {"experiment": experiment_id})
    transaction.connection.execute(_REPLACE, {"experiment": experiment_id, "snapshot": None})
