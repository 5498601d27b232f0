"""Lines that workers wrote, and lines of the master's own about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Select, delete, insert, select

from det_native.master.store import experiments as experiment_store
from det_native.master.store import runs as run_store
from det_native.master.store import trials as trial_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import experiments, logs, trials
from det_native.schema.query.moments import stored
from det_native.schema.rest import LogLine, Trial
from det_native.schema.roles import role_title

Stream = Literal["stdout", "stderr", "system"]
LONGEST_LINE = 16_384


def add(
    transaction: Transaction, trial_id: int, run_id: str, stream: Stream, lines: list[str], rank: int | None = None
) -> None:
    """Store lines; what cannot be stored as text is replaced, and an endless line is cut with a note."""
    if not lines:
        return
    common = {"trial_id": trial_id, "run_id": run_id, "time": now(), "stream": stream, "rank": rank}
    transaction.connection.execute(insert(logs), [{**common, "text": _storable(line)} for line in lines])


def add_output(
    transaction: Transaction, trial_id: int, run_id: str, text: str, offsets: list[int], rank: int = 0
) -> None:
    """Store a piece of the output of one of a run's processes, and up to where the output of each is stored now.

    A line that was rewritten in place (a progress bar) counts by what it showed last.
    """
    lines = [_last_shown(line) for line in _lines(text)]
    add(transaction, trial_id, run_id, "stdout", lines, rank if len(offsets) > 1 else None)
    run_store.update_row(transaction, run_id, log_offsets=offsets)


def delete_ended_before(transaction: Transaction, owner: str, time: datetime) -> int:
    """Delete what trials printed whose experiments had ended by then, but no line of the master; return how many."""
    ended_by = stored(time)
    old = (
        select(trials.c.id)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(experiments.c.owner == owner, experiments.c.ended.is_not(None), experiments.c.ended <= ended_by)
    )
    result = transaction.connection.execute(delete(logs).where(logs.c.trial_id.in_(old), logs.c.stream != "system"))
    return int(result.rowcount)


def after(
    connection: Connection, trial_id: int, *, owner: str | None = None, line_id: int = 0, limit: int = 1000
) -> list[LogLine]:
    """Return the first lines of a trial with an id above `line_id`.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial = trial_store.get(connection, trial_id, owner)
    query = select(logs).where(logs.c.trial_id == trial_id, logs.c.id > line_id).order_by(logs.c.id).limit(limit)
    return _read(connection, query, trial)


def last(
    connection: Connection,
    trial_id: int,
    count: int,
    *,
    owner: str | None = None,
    line_id: int = 0,
    before: int | None = None,
) -> list[LogLine]:
    """Return the last `count` lines of a trial that have an id above `line_id` and below `before`, oldest first.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial = trial_store.get(connection, trial_id, owner)
    query = select(logs).where(logs.c.trial_id == trial_id, logs.c.id > line_id).order_by(logs.c.id.desc()).limit(count)
    if before is not None:
        query = query.where(logs.c.id < before)
    return _read(connection, query, trial)[::-1]


def _read(connection: Connection, query: Select[Any], trial: Trial) -> list[LogLine]:
    rows = list(connection.execute(query))
    several = any(row.rank is not None for row in rows)
    config = experiment_store.config_of(connection, trial.experiment_id) if several else {}
    return [LogLine.model_validate(row._asdict() | {"role": role_title(config, row.rank)}) for row in rows]


def _last_shown(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _storable(line: str) -> str:
    line = line.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [... {len(line) - LONGEST_LINE} more characters]"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
