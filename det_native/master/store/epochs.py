"""What the framework's own history has of each epoch: rows by run, shown by the rule for restarted trials."""

from __future__ import annotations

from sqlalchemy import Connection, select

from det_native.master.store import trials as trial_store
from det_native.master.store.bulk import bulk_insert
from det_native.master.store.database import Transaction
from det_native.master.store.tables import epochs as table
from det_native.master.store.tables import runs
from det_native.schema.reports import EpochRow


def add(transaction: Transaction, trial_id: int, run: int, row: EpochRow) -> None:
    """Store the row of an epoch; one that this run has reported already changes nothing.

    Parameters
    ----------
    run : int
        Its number among the runs of the trial.
    """
    connection = transaction.connection
    same = (table.c.trial_id == trial_id) & (table.c.run == run) & (table.c.batch == row.batch)
    if connection.execute(select(table.c.batch).where(same)).first() is None:
        bulk_insert(connection, table, [(trial_id, run, row.batch, row.model_dump_json())])


def read(connection: Connection, trial_id: int, *, owner: str | None = None) -> list[EpochRow]:
    """Return the epochs of a trial, in order: a run that continues from a batch owns those that end after it.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    begun = select(runs.c.number, runs.c.start_batch).where(runs.c.trial_id == trial_id).order_by(runs.c.number)
    stored = select(table.c.run, table.c.batch, table.c.row).where(table.c.trial_id == trial_id)
    of_run: dict[int, list[tuple[int, str]]] = {}
    for run, batch, text in connection.execute(stored.order_by(table.c.run, table.c.batch)):
        of_run.setdefault(run, []).append((batch, text))
    shown: dict[int, str] = {}
    for number, start in connection.execute(begun):
        shown = {batch: text for batch, text in shown.items() if batch <= start}
        shown |= dict(of_run.get(number, ()))
    return [EpochRow.model_validate_json(shown[batch]) for batch in sorted(shown)]
