"""Messages to people, on their way out."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from det_native.master.store.database import Transaction
from det_native.master.store.user_tables import messages
from det_native.schema.notify_rest import MessageInfo

WAITING, SENT, FAILED = "WAITING", "SENT", "FAILED"


class Message(MessageInfo):
    """A message, and whose it is."""

    owner: str


def add(
    transaction: Transaction,
    owner: str,
    event: str,
    target: dict[str, Any],
    body: dict[str, Any],
    *,
    now: str,
    due: str,
    experiment_id: int | None = None,
    trial_id: int | None = None,
) -> None:
    """Have a message sent when it is due."""
    row = {
        "owner": owner,
        "experiment_id": experiment_id,
        "trial_id": trial_id,
        "event": event,
        "target": target,
        "body": body,
        "state": WAITING,
        "next": due,
        "created": now,
    }
    transaction.connection.execute(insert(messages), row)


def of_experiment(connection: Connection, experiment_id: int, event: str) -> list[Message]:
    """Return the messages on such an event of an experiment, oldest first."""
    query = select(messages).where(messages.c.experiment_id == experiment_id, messages.c.event == event)
    return [_message(row) for row in connection.execute(query.order_by(messages.c.id))]


def latest(connection: Connection, owner: str, limit: int) -> list[Message]:
    """Return the newest messages."""
    query = select(messages).where(messages.c.owner == owner).order_by(messages.c.id.desc()).limit(limit)
    return [_message(row) for row in connection.execute(query)]


def due(connection: Connection, now: str, limit: int = 50) -> list[Message]:
    """Return the messages that are to be sent, the longest due first."""
    query = (
        select(messages)
        .where(messages.c.state == WAITING, messages.c.next <= now)
        .order_by(messages.c.next, messages.c.id)
        .limit(limit)
    )
    return [_message(row) for row in connection.execute(query)]


def next_due(connection: Connection) -> str | None:
    """Return when the next message is due, None if there is none."""
    found: str | None = connection.execute(
        select(func.min(messages.c.next)).where(messages.c.state == WAITING)
    ).scalar()
    return found


def change(transaction: Transaction, message_id: int, **columns: Any) -> None:
    """Change a message."""
    transaction.connection.execute(update(messages).where(messages.c.id == message_id).values(**columns))


def _message(row: Any) -> Message:
    return Message(**{name: getattr(row, name) for name in Message.model_fields})
