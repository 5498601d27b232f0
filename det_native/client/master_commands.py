"""``det master``: what is done with the master's own database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from det_native.client.output import Output, takes_output_options
from det_native.errors import ArgumentError
from det_native.schema.home import Home, read_runtime
from det_native.schema.start_settings import DATABASE, database_url, kept_setting

if TYPE_CHECKING:
    from det_native.storage.backups import Backup

_SQLITE = "sqlite:///"


@click.group()
def master() -> None:
    """Back up and restore the database of the master of this machine."""


@master.command()
@takes_output_options
def backups(*, output: Output) -> None:
    """List the backups, newest first."""
    found = _backups(_database())
    if output.for_programs:
        rows = [(one.path.name, one.time.isoformat(), one.path.stat().st_size) for one in found]
        output.table(("name", "time", "bytes"), rows)
        return
    for backup in found:
        click.echo(f"{backup.path.name}  {backup}")


@master.command()
def backup() -> None:
    """Back the database up now; the master may be running, and does so by itself every hour."""
    from det_native.storage import backups as storage

    database = _database()
    if not database.exists():
        raise ArgumentError(f"There is no database {database} yet: no master has run in this home.")
    made = storage.make(database)
    click.echo(f"Backed up to {made.path} ({made}).")


@master.command()
@click.argument("name", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def restore(name: str | None, *, yes: bool) -> None:
    """Put a backup in the place of the database: the newest, or the one of that NAME (see `det master backups`).

    The master must be stopped. What was there is kept aside. Checkpoints and the files of experiments stay as they are.
    """
    from det_native.storage import backups as storage

    home = Home.default()
    database = _database()
    if read_runtime(home) is not None:
        raise ArgumentError(f"The master of {home.path} runs. Stop it first: `det down`.")
    chosen = _chosen(database, name)
    if not yes:
        click.confirm(
            f"Put the backup of {chosen} in the place of {database}? What was stored after it will be missing.",
            abort=True,
        )
    aside = storage.restore(database, chosen)
    click.echo(f"Restored {database} as it was at {chosen}." + (f" What was there is in {aside}." if aside else ""))


def _chosen(database: Path, name: str | None) -> Backup:
    from det_native.storage import backups as storage

    found = _backups(database)
    if name is not None:
        for one in found:
            if name in (one.path.name, str(one.path)):
                storage.check(one.path)
                return one
        raise ArgumentError(f"There is no backup {name!r} in {database.parent / storage.FOLDER}.")
    for one in found:
        try:
            storage.check(one.path)
        except storage.DamagedDatabaseError as error:
            click.echo(f"Left out: {error}", err=True)
        else:
            return one
    raise ArgumentError(f"Every backup in {database.parent / storage.FOLDER} is damaged.")


def _backups(database: Path) -> list[Backup]:
    from det_native.storage import backups as storage

    found = storage.listing(database)
    if not found:
        raise ArgumentError(
            f"There is no backup in {database.parent / storage.FOLDER}. To begin with an empty database, stop the "
            f"master and move {database} away; the checkpoints in {database.parent / 'checkpoints'} stay."
        )
    return found


def _database() -> Path:
    """Return the file of the master's database."""
    home = Home.default()
    url = database_url(home, kept_setting(home, DATABASE))
    if not url.startswith(_SQLITE):
        raise ArgumentError(
            "The database of this home is on a server (DET_DATABASE): use its own tools, pg_dump and pg_restore."
        )
    return Path(url.removeprefix(_SQLITE))
