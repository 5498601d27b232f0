"""Pictures, tables, texts and histograms that trials have logged: rows by run, shown by the rule for restarted trials.

Their contents are blobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from det_native.errors import NotFoundError
from det_native.master.store import trials as trial_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import media as table
from det_native.master.store.tables import runs
from det_native.schema.outputs import LoggedMedium, MediaKind, Medium

if TYPE_CHECKING:
    from det_native.master.store.tables import AnyRow

_NAMES = 50  # of one event


def add(transaction: Transaction, trial_id: int, run: int, items: Sequence[LoggedMedium]) -> dict[str, Any] | None:
    """Store what a run has logged.

    Parameters
    ----------
    run : int
        Its number among the runs of the trial.

    Returns
    -------
    dict or None
        Data of the event that tells of them: how many, the id of the last one, its batch, names; None without any.
    """
    if not items:
        return None
    created = now()
    rows = [{"trial_id": trial_id, "run": run, "created": created, **item.model_dump(mode="json")} for item in items]
    transaction.connection.execute(table.insert(), rows)
    newest = select(table.c.id).where(table.c.trial_id == trial_id).order_by(table.c.id.desc()).limit(1)
    last = transaction.connection.execute(newest).scalar_one()
    names = list(dict.fromkeys(item.name for item in items))[:_NAMES]
    return {"count": len(items), "last": last, "batch": max(item.batch for item in items), "names": names}


def read(
    connection: Connection,
    trial_id: int,
    *,
    owner: str | None = None,
    kind: MediaKind | None = None,
    name: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[Medium]:
    """Return what a trial has logged, in order of ids: a run that continues from a batch owns what comes after it.

    Of one name after that batch itself, what the newest run has logged is shown.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    begun = select(runs.c.number, runs.c.start_batch).where(runs.c.trial_id == trial_id).order_by(runs.c.number)
    starts = [(row.number, row.start_batch) for row in connection.execute(begun)]
    query = select(table).where(table.c.trial_id == trial_id).order_by(table.c.id)
    output = MediaKind.OUTPUT.value
    query = query.where(table.c.kind != output if kind is None else table.c.kind == kind.value)
    if name is not None:
        query = query.where(table.c.name == name)
    if len(starts) < 2:  # all are shown: the database leaves out what is not asked for
        return [_medium(row) for row in connection.execute(query.where(table.c.id > after).limit(limit))]
    shown = [row for row in _shown(connection.execute(query).all(), starts) if row.id > after]
    return [_medium(row) for row in shown[:limit]]


def get(connection: Connection, trial_id: int, medium_id: int, owner: str | None = None) -> Medium:
    """Return one medium of a trial.

    Raises
    ------
    NotFoundError
        If there is no such trial, or it has no such medium.
    """
    trial_store.get(connection, trial_id, owner)
    found = connection.execute(select(table).where(table.c.trial_id == trial_id, table.c.id == medium_id)).first()
    if found is None:
        raise NotFoundError(
            f"Trial {trial_store.name_of(connection, trial_id)} has logged nothing by the number {medium_id}."
        )
    return _medium(found)


def _shown(rows: Sequence[AnyRow], starts: Sequence[tuple[int, int]]) -> list[AnyRow]:
    of_run: dict[int, list[AnyRow]] = {}
    for row in rows:
        of_run.setdefault(row.run, []).append(row)
    shown: list[AnyRow] = []
    for number, start in starts:
        own = of_run.get(number, [])
        again = {(row.kind, row.name) for row in own if row.batch == start}
        kept = [row for row in shown if row.batch < start or (row.batch == start and (row.kind, row.name) not in again)]
        shown = kept + own
    return shown


def _medium(row: AnyRow) -> Medium:
    return Medium.model_validate({key: value for key, value in row._mapping.items() if key != "run"})
