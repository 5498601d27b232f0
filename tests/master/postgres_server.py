"""A Postgres server of the tests' own, which they may stop and start."""

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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from det_native.master.store.database import Database


class PostgresServer:
    """A server on a Unix socket.

    Parameters
    ----------
    folder : Path
        Where its data, its log and its socket are; it belongs to the server's user.
    tools : Path
        The folder of ``initdb`` and ``pg_ctl``.
    options : dict
        How its programs are run.
    """

    def __init__(self, folder: Path, tools: Path, options: dict[str, Any]) -> None:
        self._folder = folder
        self._tools = tools
        self._migrated: str | None = None
        self._options = {"stdout": subprocess.DEVNULL, "check": True, "cwd": folder, **options}
        initialize = [tools / "initdb", "-D", folder / "data", "-A", "trust", "-U", "det", "--no-sync"]
        subprocess.run(initialize, **self._options)

    @property
    def url(self) -> str:
        """The URL of its maintenance database."""
        return f"postgresql+psycopg://det@/postgres?host={self._folder}"

    def new_database(self, *, migrated: bool = False) -> str:
        """Make an empty database; give its URL. The migrations run in one of them only, of which others are copies."""
        import psycopg

        if migrated and self._migrated is None:
            made = self.new_database()
            Database(made).close()
            self._migrated = make_url(made).database
        name = f"det_{uuid.uuid4().hex}"
        origin = f" TEMPLATE {self._migrated}" if migrated else ""
        with psycopg.connect(host=str(self._folder), user="det", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{origin}")
        return self.url.replace("/postgres?", f"/{name}?")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off"
        self._control("-o", settings, "-l", self._folder / "log", "start")

    def stop(self) -> None:
        """Stop it as a crash does: no session ends in order."""
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str | Path) -> None:
        subprocess.run([self._tools / "pg_ctl", "-D", self._folder / "data", "-w", *arguments], **self._options)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Run one for the block; the test is skipped where none can be run."""
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
        server = PostgresServer(folder, binaries[-1].parent, {"user": user} if os.geteuid() == 0 else {})
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
