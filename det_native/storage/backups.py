"""Copies of a master's SQLite database: made while it is in use, checked, some kept, and put back."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from det_native.errors import MasterError, StorageError

FOLDER = "backups"
_NEWEST = 3
_DAYS = 3
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_BESIDE = ("", "-wal", "-shm")
_HEADER = 100  # bytes


class DamagedDatabaseError(StorageError):
    """A database file that SQLite cannot read, or finds inconsistent."""


@dataclass(frozen=True)
class Backup:
    """A copy of a database.

    Attributes
    ----------
    time : datetime
        When it was made, UTC.
    """

    path: Path
    time: datetime

    def __str__(self) -> str:
        return f"{self.time:%Y-%m-%d %H:%M:%S} UTC, {self.path.stat().st_size / 1e6:.1f} MB"


def check(database: Path) -> None:
    """Look through a database file; one that is not there yet is sound.

    Raises
    ------
    DamagedDatabaseError
        If it is no database, or its pages contradict each other; the message says what SQLite found.
    """
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(database)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:
        raise  # locked, not readable: not the content's fault
    except sqlite3.DatabaseError as error:
        raise DamagedDatabaseError(f"The database {database} is damaged: {error}.") from error
    if found == "ok":
        found = _shortened(database)
    if found:
        raise DamagedDatabaseError(f"The database {database} is damaged: {' '.join(str(found).split())}.")


def _shortened(database: Path) -> str:
    """Return what of a file is missing at its end, which SQLite takes for zeros; an empty text if nothing is."""
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:  # it has what the file lacks
        return ""
    size = database.stat().st_size
    if not size:  # made and not yet written to, or cut short
        return "it is empty, though there are backups of it" if listing(database) else ""
    with database.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER:
        return f"it has {size} bytes only"
    page = int.from_bytes(header[16:18], "big")
    page = 1 << 16 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    known = header[24:28] == header[92:96]  # the number of pages is of the last change
    whole = size % page == 0 and (not known or size >= pages * page)
    return "" if whole else f"it has {size} bytes, where {pages * page} were written"


def listing(database: Path, now: datetime | None = None) -> list[Backup]:
    """Return the backups of a database, newest first.

    One from the future comes after all others: it was made before the clock was set back, and so before those.
    """
    now = now or datetime.now(UTC)
    found = []
    for path in (database.parent / FOLDER).glob(f"{database.stem}-*Z.db"):
        try:
            time = datetime.strptime(path.stem.removeprefix(f"{database.stem}-"), _STAMP).replace(tzinfo=UTC)
        except ValueError:
            continue
        found.append(Backup(path, time))
    return sorted(found, key=lambda backup: (backup.time <= now, backup.time), reverse=True)


def make(database: Path) -> Backup:
    """Copy a database that may be in use, check the copy, and remove backups that are too many.

    Kept are the three newest, and the newest of each of the last three days that have any.

    Raises
    ------
    DamagedDatabaseError
        If the copy is not sound; the earlier backups stay.
    StorageError
        If it cannot be written.
    """
    folder = database.parent / FOLDER
    time = datetime.now(UTC)
    path = folder / f"{database.stem}-{time.strftime(_STAMP)}.db"
    unfinished = path.with_suffix(".unfinished")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_room(database, folder)
        try:
            unfinished.touch(0o600)
            # All pages in one step: it is one reader beside the writer, and never begins anew.
            with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(unfinished)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
            check(unfinished)
            _flush(unfinished)
            os.replace(unfinished, path)
            _flush(folder)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, sqlite3.OperationalError) as error:
        raise StorageError(f"No backup of {database} could be made: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise DamagedDatabaseError(f"The database {database} is damaged: {error}.") from error
    for old in _superfluous(listing(database, time)):
        old.path.unlink(missing_ok=True)
    return Backup(path, time)


def restore(database: Path, backup: Backup) -> Path | None:
    """Put a backup in the place of a database that no master uses; what was there is kept aside.

    Returns
    -------
    Path or None
        The folder into which the files that were there went; None if there were none.

    Raises
    ------
    MasterError
        If a master uses the database.
    DamagedDatabaseError
        If the backup itself is damaged.
    """
    lock = FileLock(os.fspath(database) + ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise MasterError(f"A master uses the database {database}. Stop it first: `det down`.") from error
    try:
        check(backup.path)
        fresh = database.with_suffix(".restoring")
        shutil.copyfile(backup.path, fresh)
        fresh.chmod(0o600)
        _flush(fresh)
        aside = _put_aside(database)
        os.replace(fresh, database)
        _flush(database.parent)
        return aside
    finally:
        lock.release()


def _put_aside(database: Path) -> Path | None:
    there = [path for end in _BESIDE if (path := database.with_name(database.name + end)).exists()]
    if not there:
        return None
    aside = database.parent / FOLDER / f"replaced-{datetime.now(UTC).strftime(_STAMP)}"
    aside.mkdir(mode=0o700, parents=True)
    # The log that belongs to the old file goes first: with the new one it would be a wrong log.
    for path in reversed(there):
        os.replace(path, aside / path.name)
    return aside


def _superfluous(backups: list[Backup]) -> list[Backup]:
    days: dict[str, Backup] = {}
    for backup in backups:
        days.setdefault(f"{backup.time:%Y%m%d}", backup)
    kept = {backup.path for backup in [*backups[:_NEWEST], *list(days.values())[:_DAYS]]}
    return [backup for backup in backups if backup.path not in kept]


def _check_room(database: Path, folder: Path) -> None:
    needed = sum(path.stat().st_size for end in _BESIDE if (path := database.with_name(database.name + end)).exists())
    free = shutil.disk_usage(folder).free
    if free < 2 * needed:
        raise StorageError(
            f"No backup of {database} is made: {free / 1e6:.0f} MB are free in {folder}, twice its size of "
            f"{needed / 1e6:.0f} MB is wanted."
        )


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
