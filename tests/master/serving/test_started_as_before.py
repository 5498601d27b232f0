"""A master has what its home was set up with, however it is started: by `det up`, by a submit, after it was killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from sqlalchemy import make_url

from det_native.client.connect import connect
from det_native.client.starting import ensure_master
from det_native.errors import MasterStartError
from det_native.master import kept_settings
from det_native.master.config import parse_arguments
from det_native.master.kept_settings import settle_variables
from det_native.schema import registry, routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.processes import wait_until_gone
from det_native.schema.start_settings import database_url, kept_file

PATIENCE = 120.0
SMTP_URL = "smtp://me:mail-word@127.0.0.1:2525?from=det@example.org"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home without a master, the one that commands and kernels of the test have."""
    found = Home(tmp_path / "home")
    monkeypatch.setenv("DET_HOME", str(found.path))
    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    yield found
    det("down", "--kill")


def det(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **variables},
    )


def kill(home: Home) -> None:
    """End the master as the system does for want of memory."""
    runtime = read_runtime(home)
    assert runtime is not None
    os.kill(runtime.pid, signal.SIGKILL)
    assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)


def with_password(server: PostgresServer) -> str:
    """Have the server ask a user for a password; return the address of a database of theirs with the right one."""
    import psycopg

    name = make_url(server.new_database()).database
    folder = server.url.rpartition("host=")[2]
    with psycopg.connect(host=folder, user="det", dbname="postgres", autocommit=True) as connection:
        connection.execute("CREATE ROLE guest SUPERUSER LOGIN PASSWORD 'right-word'")
        [access] = connection.execute("SHOW hba_file").fetchall()[0]
        connection.execute("SELECT pg_reload_conf()")
        text = Path(access).read_text()
        Path(access).write_text(f"local all guest scram-sha-256\n{text}")
        connection.execute("SELECT pg_reload_conf()")
    return f"postgres://guest:right-word@/{name}?host={folder}"


@pytest.mark.slow
@pytest.mark.long
def test_the_database_and_the_mail_server_of_a_home_are_those_of_every_later_master(
    home: Home, postgres: PostgresServer
) -> None:
    url = with_password(postgres)
    up = det("up", DET_DATABASE=url, DET_SMTP_URL=SMTP_URL, DET_DISK_BUDGET="5GB")
    assert up.returncode == 0, up.stderr
    connect(None, start=False).call(routes.CREATE_MODEL, registry.ModelCreate(name="kept"))
    assert not home.database.exists()
    assert "5.00 GB" in det("space").stdout

    kill(home)
    ensure_master(home)  # as a submit does, in a kernel without these variables
    session = connect(None, start=False)
    assert [each.name for each in session.call(routes.LIST_MODELS)] == ["kept"]
    told = det("notify", "set", "--email", "me@example.org")
    assert (told.returncode, told.stderr) == (0, ""), "it knows its mail server"
    assert not home.database.exists()
    assert "on a server (DET_DATABASE): use its own tools, pg_dump" in det("master", "backup").stderr

    assert det("down").returncode == 0
    for wrong, said in (
        (url.replace("right-word", "other-word"), 'password authentication failed for user "guest"'),
        (postgres.new_database(), f"The experiments of {home.path} are in postgresql+psycopg://guest:***@/"),
        (f"sqlite:///{home.database}", f"and DET_DATABASE names {home.database}: start without DET_DATABASE"),
        ("mysql://guest:right-word@db/det", "DET_DATABASE must be of the form postgresql://"),
    ):
        refused = det("up", DET_DATABASE=wrong)
        assert refused.returncode == 1
        assert said in refused.stderr
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
        assert "-word" not in refused.stderr
    assert "Traceback" not in home.log.read_text()

    # One that runs has what it has.
    assert det("up").returncode == 0
    assert det("up", DET_DATABASE=url).returncode == 0
    other = det("up", DET_DATABASE=postgres.new_database())
    assert (other.returncode, "It has another database than DET_DATABASE names" in other.stderr) == (1, True)

    # Nobody else reads a password: not in the log, nor in what tells of the master.
    assert det("up").returncode == 0
    holders = [path for path in home.path.rglob("*") if path.is_file() and b"right-word" in path.read_bytes()]
    assert holders == [kept_file(home, "DET_DATABASE")]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(holders[0].parent.stat().st_mode) == 0o700
    assert det("down").returncode == 0
    assert det("up", DET_SMTP_URL="none").returncode == 0
    assert not kept_file(home, "DET_SMTP_URL").exists()
    assert "DET_SMTP_URL" in det("notify", "set", "--email", "me@example.org").stderr


@pytest.mark.slow
def test_a_server_that_is_down_is_one_sentence(home: Home) -> None:
    up = det("up", DET_DATABASE="postgresql://me:pass-word@127.0.0.1:1/det")
    assert up.returncode == 1
    [line] = up.stderr.splitlines()
    assert "The database postgresql+psycopg://me:***@127.0.0.1:1/det cannot be opened: " in line
    assert "Connection refused" in line
    assert "Start its server, or correct DET_DATABASE" in line
    assert "Traceback" not in home.log.read_text()
    assert not kept_file(home, "DET_DATABASE").exists(), "what never worked is not kept"
    assert not home.database.exists()


@pytest.mark.slow
def test_a_killed_master_is_started_again_as_it_was(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_SCHEDULER", "fair_share")
    assert det("up", "--slots", "cpu:3", "--port", "0", "--disk-budget", "5GB").returncode == 0
    monkeypatch.delenv("DET_SCHEDULER")
    assert det("space", "--budget", "9GB").returncode == 0
    kill(home)
    runtime = ensure_master(home).runtime
    assert (runtime.options, runtime.settings["DET_SCHEDULER"]) == (["--slots", "cpu:3"], "fair_share")
    assert len(connect(None, start=False).call(routes.GET_MASTER).slots) == 3
    assert "9.00 GB" in det("space").stdout, "what was said last"
    kill(home)
    assert det("up", "--slots", "cpu:2").returncode == 0
    assert len(connect(None, start=False).call(routes.GET_MASTER).slots) == 2
    # One that was stopped is started as is said then.
    assert det("down").returncode == 0
    assert ensure_master(home).runtime.options == []


def test_options_of_one_start_are_not_those_of_the_next(tmp_path: Path) -> None:
    arguments = ["--home", str(tmp_path), "--slots", "2", "--warm=torch", "--ready-fd", "9", "--ray-trusted"]
    config = parse_arguments([*arguments, "--launcher", "ray", "--warm", "keras"], {})
    assert config.options == ("--slots", "2", "--ray-trusted", "--launcher", "ray")


def test_a_home_of_sqlite_is_not_left_for_a_server(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_SMTP_URL", "")
    assert settle_variables(home) == f"sqlite:///{home.database}"
    home.path.mkdir()
    home.database.touch()
    monkeypatch.setenv("DET_DATABASE", "postgresql://me:pass-word@db/det?password=pass-word")
    with pytest.raises(Exception, match="start without DET_DATABASE, or, if the experiments are there now, move /"):
        settle_variables(home)
    monkeypatch.setenv("DET_DATABASE", f"sqlite:///{home.database}")
    assert settle_variables(home) == f"sqlite:///{home.database}"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("postgres://me@db/det", True),
        ("postgresql://you:word@db:5432/det?sslmode=require", True),
        ("postgresql+psycopg:///det?host=db", True),
        ("postgresql://me@db:5433/det", False),
        ("postgresql://me@other/det", False),
        ("postgresql://me@db/other", False),
        ("sqlite:///det.db", False),
    ],
)
def test_an_address_is_compared_by_the_database_that_it_names(
    text: str, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    monkeypatch.setenv("DET_DATABASE", "postgresql://me:word@db/det")
    monkeypatch.setenv("DET_SMTP_URL", "")
    kept_settings.keep(home, settle_variables(home))
    monkeypatch.setenv("DET_DATABASE", text)
    if same:
        assert settle_variables(home) == database_url(home, text)
    else:
        with pytest.raises(MasterStartError, match="The experiments of"):
            settle_variables(home)


def test_keys_of_checkpoints_are_kept_with_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is started after a kill has the place, by its options, and its environment has not the keys."""
    monkeypatch.setenv("DET_SMTP_URL", "")
    home = Home(tmp_path)
    kept_settings.keep(home, settle_variables(home), checkpoints=("s3://a/b", {"key": "1"}))
    assert kept_settings.checkpoint_options(home, "s3://a/b", {}) == {"key": "1"}
    assert kept_settings.checkpoint_options(home, "s3://a/b", {"key": "2"}) == {"key": "2"}
    assert kept_settings.checkpoint_options(home, "s3://other", {}) == {}
