"""Settings of users, by name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.user_tables import settings


def get(connection: Connection, owner: str, name: str) -> Any:
    """Return a setting, None if there is none."""
    query = select(settings.c.value).where(settings.c.owner == owner, settings.c.name == name)
    return connection.execute(query).scalar()


def put(transaction: Transaction, owner: str, name: str, value: Any) -> None:
    """Keep a setting."""
    where = (settings.c.owner == owner, settings.c.name == name)
    changed = transaction.connection.execute(update(settings).where(*where).values(value=value, updated=now()))
    if not changed.rowcount:
        row = {"owner": owner, "name": name, "value": value, "updated": now()}
        transaction.connection.execute(insert(settings), row)


def remove(transaction: Transaction, owner: str, name: str) -> bool:
    """Forget a setting; return whether there was one."""
    where = (settings.c.owner == owner, settings.c.name == name)
    return bool(transaction.connection.execute(delete(settings).where(*where)).rowcount)
