"""Output of experiments is deleted some days after their end, where their configuration or the master says so."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Text, cast, delete, select

from det_native.master.store.database import Database
from det_native.master.store.tables import experiments, logs, trials

_AT_ONCE = 200


def drop_old_output(database: Database, default_days: int | None, now: datetime | None = None) -> int:
    """Delete the output of experiments that ended more days ago than it is kept; return the number of lines.

    Parameters
    ----------
    default_days : int or None
        For how many days the output is kept of experiments whose configuration does not say; None and -1: for ever.
    """
    now = now or datetime.now(UTC)
    lines = 0
    with database.read() as connection:
        due = _due(connection, default_days, now)
    for first in range(0, len(due), _AT_ONCE):
        of = select(trials.c.id).where(trials.c.experiment_id.in_(due[first : first + _AT_ONCE]))
        with database.write() as transaction:
            # Lines of the master say what became of a trial: they stay.
            gone = transaction.connection.execute(
                delete(logs).where(logs.c.trial_id.in_(of), logs.c.stream != "system")
            )
            lines += int(gone.rowcount)
    return lines


def retention_days(config: dict[str, Any]) -> int | None:
    """Return for how many days a configuration keeps the output; None where it does not say, -1 for ever."""
    policy = config.get("retention_policy") or {}
    for days in (config.get("log_retention_days"), policy.get("log_retention_days")):
        if isinstance(days, int):
            return days
    return None


def _due(connection: Connection, default_days: int | None, now: datetime) -> list[int]:
    with_output = (
        select(trials.c.experiment_id).join(logs, logs.c.trial_id == trials.c.id).where(logs.c.stream != "system")
    )
    query = select(experiments.c.id, experiments.c.ended, cast(experiments.c.config, Text).label("config")).where(
        experiments.c.ended.is_not(None), experiments.c.id.in_(with_output)
    )
    due = []
    for row in connection.execute(query):
        days = retention_days(json.loads(row.config))
        days = default_days if days is None else days
        if days is not None and days >= 0 and datetime.fromisoformat(row.ended) <= now - timedelta(days=days):
            due.append(int(row.id))
    return due
