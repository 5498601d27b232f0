"""Files that the code of trials has written: rows by run, of which those of the newest run are shown."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, insert, select

from det_native.errors import NotFoundError
from det_native.master.store import events
from det_native.master.store import trials as trial_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import artifacts as table
from det_native.master.store.tables import experiments, trials
from det_native.schema.outputs import Artifact, WrittenFile

# The path of the row that says that a run has begun, whose files are then those of the trial, also if there are none.
_BEGUN = ""
_PATHS_OF_EVENT = 50
_DELETED_AT_ONCE = 500


def begin(transaction: Transaction, trial_id: int, run: int) -> None:
    """Show the files of this run from now on: it has those of its checkpoint, and reports them anew.

    Parameters
    ----------
    run : int
        Its number among the runs of the trial.
    """
    mine = (table.c.trial_id == trial_id) & (table.c.run == run) & (table.c.path == _BEGUN)
    if transaction.connection.execute(select(table.c.run).where(mine)).first() is None:
        transaction.connection.execute(insert(table), [_row(trial_id, run, _BEGUN, None, 0, 0, "")])


def add(
    transaction: Transaction, trial_id: int, run: int, files: Sequence[WrittenFile], removed: Sequence[str] = ()
) -> None:
    """Store what a run has written, and forget what it has removed; those who listen are told."""
    connection = transaction.connection
    _delete(connection, trial_id, run, [*(file.path for file in files), *removed])
    rows = {file.path: file for file in files}  # of a path that is there twice, the last one
    if rows:
        connection.execute(
            insert(table),
            [_row(trial_id, run, file.path, file.sha256, file.size, file.batch, file.note) for file in rows.values()],
        )
    paths = [*rows, *removed]
    if paths:
        query = select(trials.c.experiment_id, experiments.c.owner).join(
            experiments, experiments.c.id == trials.c.experiment_id
        )
        experiment_id, owner = connection.execute(query.where(trials.c.id == trial_id)).one()
        events.emit(transaction, owner, "artifacts", experiment_id, trial_id, {"paths": paths[:_PATHS_OF_EVENT]})


def of_trial(connection: Connection, trial_id: int, *, owner: str | None = None) -> list[Artifact]:
    """Return the files of a trial by their paths: those of its newest run that has begun or has reported any.

    Raises
    ------
    NotFoundError
        If there is no such trial.
    """
    trial_store.get(connection, trial_id, owner)
    newest = select(func.max(table.c.run)).where(table.c.trial_id == trial_id).scalar_subquery()
    rows = connection.execute(
        select(table)
        .where(table.c.trial_id == trial_id, table.c.run == newest, table.c.path != _BEGUN)
        .order_by(table.c.path)
    )
    return [Artifact.model_validate(dict(row._mapping)) for row in rows]


def get(connection: Connection, trial_id: int, path: str, *, owner: str | None = None) -> Artifact:
    """Return a file of a trial.

    Raises
    ------
    NotFoundError
        If there is no such trial, or its code has written no such file.
    """
    for artifact in of_trial(connection, trial_id, owner=owner):
        if artifact.path == path:
            return artifact
    raise NotFoundError(f"Trial {trial_store.name_of(connection, trial_id)} has written no file {path!r}.")


def of_run(connection: Connection, trial_id: int, run: int) -> dict[str, WrittenFile]:
    """Return what one run has reported, by path."""
    mine = (table.c.trial_id == trial_id) & (table.c.run == run) & (table.c.path != _BEGUN)
    return {
        row.path: WrittenFile(path=row.path, sha256=row.sha256, size=row.size, batch=row.batch, note=row.note)
        for row in connection.execute(select(table).where(mine))
    }


def _delete(connection: Connection, trial_id: int, run: int, paths: Sequence[str]) -> None:
    mine = (table.c.trial_id == trial_id) & (table.c.run == run)
    for first in range(0, len(paths), _DELETED_AT_ONCE):
        connection.execute(delete(table).where(mine, table.c.path.in_(paths[first : first + _DELETED_AT_ONCE])))


def _row(trial_id: int, run: int, path: str, sha256: str | None, size: int, batch: int, note: str) -> dict[str, object]:
    return {
        "trial_id": trial_id,
        "run": run,
        "path": path,
        "sha256": sha256,
        "size": size,
        "batch": batch,
        "note": note,
        "created": now(),
    }
