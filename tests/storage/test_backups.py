"""Backups of a database: whole while it is written to, some kept, put back."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from det_native.errors import MasterError, StorageError
from det_native.storage import backups


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A small database in the mode that the master uses."""
    path = tmp_path / "det.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE numbers (value INTEGER, text TEXT)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(n, "x" * 500) for n in range(1000)])
        connection.commit()
    return path


def count(path: Path) -> int:
    """How many rows a database has."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM numbers").fetchone()[0])


def damage(path: Path) -> None:
    """Overwrite pages in the middle, as a failing disk does."""
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * 40960)


def test_a_database_that_is_written_to_is_backed_up_whole(database: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(database, timeout=60)) as connection:
            while not stop.is_set():  # always two rows at once
                connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(1, "y"), (2, "z")])
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [backups.make(database) for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    counts = [count(one.path) for one in made]
    assert counts == sorted(counts)
    assert all(found >= 1000 and found % 2 == 0 for found in counts)
    assert made[0].path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("header", [False, True])
def test_damage_is_found(database: Path, header: bool) -> None:
    backups.check(database)
    if header:
        database.write_bytes(b"no database at all, " * 100)
    else:
        damage(database)
    with pytest.raises(backups.DamagedDatabaseError, match="is damaged"):
        backups.check(database)


def test_a_damaged_database_replaces_no_backup(database: Path) -> None:
    good = backups.make(database)
    damage(database)
    with pytest.raises(backups.DamagedDatabaseError):
        backups.make(database)
    assert [one.path for one in backups.listing(database)] == [good.path]
    assert not list(database.parent.glob("backups/*.unfinished"))


def test_the_newest_and_one_of_each_day_are_kept(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = datetime(2026, 11, 1, tzinfo=UTC)
    clock = iter([begun + timedelta(hours=6 * n) for n in range(40)])

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return next(clock)

    monkeypatch.setattr(backups, "datetime", Clock)
    for _ in range(40):
        backups.make(database)
    kept = [one.time for one in backups.listing(database, begun + timedelta(days=10))]
    assert kept == [
        datetime(2026, 11, day, hour, tzinfo=UTC) for day, hour in [(10, 18), (10, 12), (10, 6), (9, 18), (8, 18)]
    ]


def test_backups_of_a_clock_that_was_set_back_are_not_the_newest(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, right = datetime(2036, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    clock = iter([ahead + timedelta(hours=n) for n in range(4)] + [right + timedelta(hours=n) for n in range(4)])

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return next(clock)

    monkeypatch.setattr(backups, "datetime", Clock)
    made = [backups.make(database) for _ in range(8)]
    assert all(one.path.exists() for one in made[5:]), "those made since it is right are kept"
    listed = backups.listing(database, right + timedelta(days=1))
    assert [one.time for one in listed[:3]] == [right + timedelta(hours=n) for n in (3, 2, 1)]
    assert len(listed) < 7


def test_restoring_keeps_what_was_there(database: Path) -> None:
    backup = backups.make(database)
    damage(database)
    broken = database.read_bytes()
    aside = backups.restore(database, backup)
    assert count(database) == 1000
    assert aside is not None
    assert (aside / "det.db").read_bytes() == broken
    database.unlink()
    assert backups.restore(database, backup) is None
    assert count(database) == 1000


def test_a_database_in_use_is_not_replaced(database: Path) -> None:
    backup = backups.make(database)
    with FileLock(f"{database}.lock"), pytest.raises(MasterError, match="`det down`"):
        backups.restore(database, backup)


def test_a_damaged_backup_is_not_put_back(database: Path) -> None:
    backup = backups.make(database)
    damage(backup.path)
    before = database.read_bytes()
    with pytest.raises(backups.DamagedDatabaseError):
        backups.restore(database, backup)
    assert database.read_bytes() == before


def test_a_disk_without_room_gets_no_backup(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = backups.shutil.disk_usage(database.parent)
    monkeypatch.setattr(backups.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(StorageError, match="twice its size"):
        backups.make(database)
