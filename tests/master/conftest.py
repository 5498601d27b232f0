"""Databases and masters for the tests of the master."""

from __future__ import annotations

import getpass
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from master_parts import Master, running_master

from det_native.master.store.database import Database


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Run a Postgres server of our own on a Unix socket; gives the URL of its maintenance database."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not binaries:
        pytest.skip("No Postgres server is installed here.")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'det-native[postgres]'.")
    # Postgres refuses to run as root, and its user must be able to reach the folder.
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="det-postgres-", dir="/var/tmp"))
    try:
        if os.geteuid() == 0:
            found = pwd.getpwnam(user)
            os.chown(folder, found.pw_uid, found.pw_gid)
        as_user = {"user": user} if os.geteuid() == 0 else {}
        data = folder / "data"
        quiet = {"stdout": subprocess.DEVNULL, "check": True, "cwd": folder, **as_user}
        tools = binaries[-1].parent
        subprocess.run([tools / "initdb", "-D", data, "-A", "trust", "-U", "det", "--no-sync"], **quiet)
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        log = folder / "log"
        subprocess.run([tools / "pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"], **quiet)
        try:
            yield f"postgresql+psycopg://det@/postgres?host={folder}"
        finally:
            subprocess.run([tools / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **quiet)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database of every kind that the store works with."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'det.db'}"
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

    server = request.getfixturevalue("postgres_url")
    name = f"det_{uuid.uuid4().hex}"
    socket = server.partition("host=")[2]
    with psycopg.connect(host=socket, user="det", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(server.replace("/postgres?", f"/{name}?"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give a migrated database of every kind."""
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    """Give a running master with two slots, around a launcher without processes."""
    with running_master(tmp_path / "home") as running:
        yield running
