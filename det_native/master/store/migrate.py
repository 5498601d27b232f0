"""Bring a database to the form that this version of the code knows."""

from __future__ import annotations

import logging
from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from det_native import __version__
from det_native.errors import MasterStartError
from det_native.master.store.tables import metadata

logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of every plugin that it has


def configuration() -> Config:
    """Return Alembic's configuration for the migrations that are packaged beside this module."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def upgrade(connection: Connection) -> None:
    """Run every migration that the database has not had yet.

    Raises
    ------
    MasterStartError
        If the database has had a migration that this version does not know: a newer version has used it.
    """
    config = configuration()
    scripts = ScriptDirectory.from_config(config)
    for revision in MigrationContext.configure(connection).get_current_heads():
        try:
            known = scripts.get_revision(revision)
        except CommandError:
            known = None
        if known is None:
            raise MasterStartError(
                f"The database was written by a newer det_native (its schema is {revision!r}; version {__version__} "
                f"knows up to {scripts.get_current_head()!r}). Install that version again, or set DET_HOME to a "
                "fresh folder."
            )
    with EnvironmentContext(config, scripts, fn=lambda revision, _: scripts._upgrade_revs("head", revision)) as steps:
        steps.configure(connection=connection, target_metadata=metadata)
        steps.run_migrations()
