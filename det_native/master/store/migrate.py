"""Bring a database to the form that this version of the code knows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from det_native._version import __version__
from det_native.errors import MasterStartError
from det_native.master.store.columns import metadata
from det_native.master.store.migrations import HEAD

if TYPE_CHECKING:
    from alembic.config import Config

logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of every plugin that it has


def upgrade(connection: Connection, before_change: Callable[[], None] = lambda: None) -> None:
    """Run every migration that the database has not had yet.

    Parameters
    ----------
    before_change : callable
        Called before a database that holds something is changed.

    Raises
    ------
    MasterStartError
        If the database has had a migration that this version does not know: a newer version has used it.
    """
    # Alembic is slow to import, and at nearly every start there is nothing to do.
    if current(connection) != HEAD:
        _run(connection, before_change)


def current(connection: Connection) -> str | None:
    """Return the last migration that a database has had, None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def configuration() -> Config:
    """Return Alembic's configuration for the migrations that are packaged beside this module."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def _run(connection: Connection, before_change: Callable[[], None]) -> None:
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = configuration()
    scripts = ScriptDirectory.from_config(config)
    revision = current(connection)
    if revision is not None and revision not in {script.revision for script in scripts.walk_revisions()}:
        raise MasterStartError(
            f"The database was written by a newer det_native (its schema is {revision!r}; version {__version__} "
            f"knows up to {HEAD!r}). Install that version again, or set DET_HOME to a fresh folder."
        )
    if revision is not None:
        before_change()
    with EnvironmentContext(config, scripts, fn=lambda known, _: scripts._upgrade_revs("head", known)) as steps:
        steps.configure(connection=connection, target_metadata=metadata)
        steps.run_migrations()
