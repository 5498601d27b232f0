"""Bring a database to the form that this version of the code knows: that of ``tables.py`` and ``user_tables.py``.

Tables, columns and indexes that a database does not have are added. To change the tables: change those modules, with a
`server_default` for what rows of before are to have, and count `HEAD` on. What else has to be done with the rows of
earlier versions, columns that get another name included, stands here by the number before which it is needed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    Text,
    cast,
    column,
    delete,
    insert,
    inspect,
    select,
    table,
    text,
    update,
)

from det_native._version import __version__
from det_native.errors import MasterStartError
from det_native.master.store import tables
from det_native.master.store.columns import metadata

if TYPE_CHECKING:
    from alembic.operations import Operations

logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of every plugin that it has

HEAD = "0023"

_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))

_BEST_TRIALS = """
UPDATE experiments SET best_trial = CASE WHEN smaller_is_better THEN (
    SELECT trials.id FROM trials WHERE trials.experiment_id = experiments.id
    ORDER BY CASE WHEN trials.best_validation IS NULL THEN 1 ELSE 0 END, trials.best_validation, trials.id LIMIT 1)
ELSE (
    SELECT trials.id FROM trials WHERE trials.experiment_id = experiments.id
    ORDER BY CASE WHEN trials.best_validation IS NULL THEN 1 ELSE 0 END, trials.best_validation DESC, trials.id LIMIT 1)
END
"""
# A running master summarises their metrics, beginning with the newest trial: it takes a while where there are many.
_NOT_SUMMARISED = """
INSERT INTO unsummarised (trial_id) SELECT id FROM trials WHERE id IN (SELECT trial_id FROM runs)
"""
_SCHEDULES_OF_PROGRAMS = (
    "UPDATE schedules SET next = NULL, state = 'CANCELED', error = 'It was made by an older version of "
    "det_native, which kept no notebook: make it again with `det submit NOTEBOOK --every`.' "
    "WHERE state IN ('ACTIVE', 'PAUSED')"
)
_HIGHEST = "SELECT seq FROM sqlite_sequence WHERE name = 'experiments'"


def upgrade(connection: Connection, before_change: Callable[[], None] = lambda: None) -> None:
    """Add what the database does not have yet.

    Parameters
    ----------
    before_change : callable
        Called before a database that holds something is changed.

    Raises
    ------
    MasterStartError
        If a newer version has used the database.
    """
    before = current(connection)
    if before == HEAD:
        return
    if before is None:
        metadata.create_all(connection, checkfirst=False)
        _VERSION.create(connection)
    elif before > HEAD:
        raise MasterStartError(
            f"The database was written by a newer det_native (its schema is {before!r}; version {__version__} "
            f"knows up to {HEAD!r}). Install that version again, or set DET_HOME to a fresh folder."
        )
    else:
        before_change()
        _change(connection, before)
    connection.execute(delete(_VERSION))
    connection.execute(insert(_VERSION).values(version_num=HEAD))


def current(connection: Connection) -> str | None:
    """Return the last form that a database has had, None for an empty one."""
    if not inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar()


def _change(connection: Connection, before: str) -> None:
    """Bring a database of an earlier version to the form of this one."""
    # Alembic is slow to import, and at nearly every start there is nothing to do.
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    # Tables of others may be in the same database; and what each version of Alembic takes for another type, stays.
    mine = {"include_object": lambda item, _name, _kind, reflected, ours: not reflected or ours is not None}
    opts = {**mine, "compare_type": False, "target_metadata": metadata}
    context = MigrationContext.configure(connection, opts=opts)
    if "0020" <= before < "0022":
        connection.execute(text("ALTER TABLE schedules RENAME COLUMN last_experiment TO last_run"))
    metadata.create_all(connection)
    _add_columns(context, Operations(context))
    if before < "0003":
        _make_lists_of_offsets(connection, Operations(context))
    if before < "0020":
        connection.execute(text(_BEST_TRIALS))
        _read_configurations(connection)
        connection.execute(text(_NOT_SUMMARISED))
    if before < "0022":
        connection.execute(text(_SCHEDULES_OF_PROGRAMS))
        connection.execute(text("UPDATE schedules SET last_run = NULL"))


def _add_columns(context: Any, operations: Operations) -> None:
    """Add columns and indexes of tables that there are, and have others be as they are now.

    SQLite makes a table anew where a column is changed, which must not forget the highest number that it gave.
    """
    from alembic.autogenerate import produce_migrations

    connection = context.connection
    sqlite = connection.dialect.name == "sqlite"
    highest = connection.execute(text(_HIGHEST)).scalar() if sqlite else None
    changes: Any = produce_migrations(context, metadata).upgrade_ops
    for of_table in changes.ops:
        kept = {"sqlite_autoincrement": metadata.tables[of_table.table_name].kwargs.get("sqlite_autoincrement")}
        with operations.batch_alter_table(of_table.table_name, table_kwargs=kept) as batch:
            for change in of_table.ops:
                batch.invoke(change)
    if highest is not None:
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = 'experiments'"))
        connection.execute(
            text("INSERT INTO sqlite_sequence (name, seq) VALUES ('experiments', :seq)"), {"seq": highest}
        )


def _make_lists_of_offsets(connection: Connection, operations: Operations) -> None:
    """Have a list in the place of the offset of a run's output, one entry a rank."""
    runs = table("runs", column("run_id"), column("log_offset", BigInteger), column("log_offsets", JSON))
    for run_id, offset in connection.execute(select(runs.c.run_id, runs.c.log_offset)).all():
        connection.execute(update(runs).where(runs.c.run_id == run_id).values(log_offsets=[offset]))
    operations.drop_column("runs", "log_offset")


def _read_configurations(connection: Connection) -> None:
    """Take from configurations what they say of labels and the like."""
    experiments = tables.experiments
    for row in connection.execute(select(experiments.c.id, cast(experiments.c.config, Text))).all():
        try:
            config = json.loads(row[1])
        except (TypeError, ValueError):  # the row is damaged, which is told when it is read
            continue
        if not isinstance(config, dict):
            continue
        said = {name: str(config[name]) for name in ("description", "project") if config.get(name)}
        labels = [label for label in config.get("labels") or () if isinstance(label, str)]
        if said or labels:
            connection.execute(update(experiments).where(experiments.c.id == row[0]).values(labels=labels, **said))
