"""A damaged database under a real master: refused at the start, told while it runs, restored from a backup."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, MemoryLauncher, Worker, running_master
from old_databases import make_first_tables
from sqlalchemy import create_engine

from det_native.errors import MasterStartError
from det_native.master.hourly_backups import HourlyBackups
from det_native.master.store.database import Database
from det_native.storage import backups

PATIENCE = 60.0


def overwrite(path: Path, start: int) -> None:
    """Overwrite a part of a file."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * max(4096, path.stat().st_size // 2))


@pytest.mark.parametrize("start", [0, 4096])
def test_a_master_does_not_start_on_a_damaged_database_and_says_the_way_out(tmp_path: Path, start: int) -> None:
    url = f"sqlite:///{tmp_path / 'det.db'}"
    Database(url).close()
    overwrite(tmp_path / "det.db", start)
    with pytest.raises(MasterStartError, match=r"is damaged: .*`det master restore`"):
        Database(url)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which two trials have trained."""
    home = tmp_path_factory.mktemp("sound") / "home"
    with running_master(home) as master:
        numbers = [master.create()["id"] for _ in range(2)]
        for job in master.world.wait_for_jobs(2):
            Worker(master, job).complete()
        for number in numbers:
            master.until_state(number, "COMPLETED")
    return home / "det.db"


@given(st.data(), st.sampled_from(["noise", "zeros", "cut short"]))
def test_damage_anywhere_is_seen_before_a_start(sound: Path, data: st.DataObject, how: str) -> None:
    content = bytearray(sound.read_bytes())
    if how == "cut short":
        del content[data.draw(st.integers(1, len(content) - 1), label="offset") :]
    else:
        page = data.draw(st.integers(0, len(content) // 4096 - 1), label="page")
        content[page * 4096 : (page + 1) * 4096] = (
            bytes(4096) if how == "zeros" else random.Random(page).randbytes(4096)
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "det.db"
        path.write_bytes(content)
        with pytest.raises(backups.DamagedDatabaseError, match=r"det\.db is damaged: "):
            backups.check(path)


def test_an_empty_file_is_damaged_only_where_there_are_backups(sound: Path, tmp_path: Path) -> None:
    empty = tmp_path / "det.db"
    empty.touch()
    backups.check(empty)  # a master ended before it had written anything
    empty.write_bytes(sound.read_bytes())
    backups.make(empty)
    empty.write_bytes(b"")
    with pytest.raises(MasterStartError, match=r"it is empty, though there are backups of it.*`det master restore`"):
        Database(f"sqlite:///{empty}")


def test_an_unreadable_row_does_not_hide_the_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_master(home) as master:
        numbers = [master.create()["id"] for _ in range(3)]
        with closing(sqlite3.connect(home / "det.db", timeout=PATIENCE)) as connection:
            connection.execute("UPDATE experiments SET config = '{\"search' WHERE id = ?", (numbers[1],))
            connection.commit()
        check_listing(master, numbers)
    with running_master(home, launcher=MemoryLauncher()) as master:  # and the others go on after a restart
        check_listing(master, numbers)
        assert len({job.experiment_id for job in master.world.wait_for_jobs(2)} & {numbers[0], numbers[2]}) == 2


def check_listing(master: Master, numbers: list[int]) -> None:
    found = {one["id"]: one for one in master.get("/experiments")}
    assert list(found) == numbers[::-1]
    assert found[numbers[1]]["state"] == "ERROR"
    assert "`det master restore`" in found[numbers[1]]["error"]["message"]
    assert found[numbers[0]]["error"] is None


def test_damage_that_shows_while_the_master_runs_refuses_what_would_be_lost(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_master(home) as master:
        master.create()
        bundle = master.bundle()
        with closing(sqlite3.connect(home / "det.db", timeout=PATIENCE)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        overwrite(home / "det.db", 4096)
        master.service.database._engine.dispose()  # what SQLite has in memory would hide it for a while
        answer = master.client.get("/api/v1/experiments")
        assert answer.status_code == 503
        assert "is damaged" in answer.json()["error"]
        body = {"protocol": 1, "config": {}, "bundle_id": bundle}
        refused = master.client.post("/api/v1/bundles", json={**body})
        assert refused.status_code in (422, 503)
        created = master.client.request("POST", "/api/v1/experiments", json=body)
        assert created.status_code >= 400


def test_before_a_migration_and_every_hour_it_is_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "det.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        make_first_tables(connection)
    engine.dispose()
    Database(f"sqlite:///{path}").close()
    (before,) = backups.listing(path)
    with closing(sqlite3.connect(before.path)) as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    Database(f"sqlite:///{path}").close()
    assert len(backups.listing(path)) == 1  # nothing was migrated

    hourly = HourlyBackups(path, first=0.0, period=0.01)
    hourly.start()
    try:
        while len(backups.listing(path)) < 3:
            assert hourly._thread.is_alive()
    finally:
        hourly.close()


def det(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "det_native.client.command", *arguments]
    environment = os.environ | {"DET_HOME": str(home), "DET_SLOTS": "cpu:1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False)


@pytest.mark.long
@pytest.mark.slow
def test_from_the_shell_a_damaged_master_is_restored(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_master(home) as master:
        master.create()
        made = det(home, "master", "backup")
        assert made.returncode == 0, made.stderr
        refused = det(home, "master", "restore", "--yes")
        assert (refused.returncode, "`det down`" in refused.stderr) == (1, True)
    overwrite(home / "det.db", 0)
    started = det(home, "up")
    assert started.returncode == 1
    assert "`det master restore`" in started.stderr
    assert "Traceback" not in started.stderr
    restored = det(home, "master", "restore", "--yes")
    assert restored.returncode == 0, restored.stderr
    assert "What was there is in" in restored.stdout
    assert det(home, "master", "backups").stdout.count("det-") == 1
    try:
        listed = det(home, "up"), det(home, "experiment", "list")
        assert [one.returncode for one in listed] == [0, 0]
        assert "Experiment 1" in listed[1].stdout
    finally:
        assert det(home, "down", "--kill").returncode == 0
