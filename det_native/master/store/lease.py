"""One master at a time has a database: a file lock beside SQLite, an advisory lock in Postgres."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from det_native.errors import MasterStartError
from det_native.master.store.address import described

# Any fixed number will do; it names the lock within the database.
ADVISORY_LOCK = 0x6465746E


class Lease:
    """The right to write to a database; given back by :meth:`release` or with the end of the process."""

    def __init__(self, url: URL, engine: Engine) -> None:
        self._url = url
        self._engine = engine
        self._file: FileLock | None = None
        self._connection: Connection | None = None
        self._locked: os.stat_result | None = None

    def acquire(self) -> None:
        """Take the right, or say who has it.

        Raises
        ------
        MasterStartError
            If another master has it.
        """
        taken = self._lock_file() if self._url.get_backend_name() == "sqlite" else self._lock_advisory()
        if not taken:
            raise MasterStartError(
                f"Another master already uses the database {described(self._url)}. "
                "Use that one, or stop it with `det down` first."
            )

    def renew(self) -> None:
        """Take the right again where the file that was locked is another one now: its file system was mounted anew.

        Raises
        ------
        MasterStartError
            If another master has it.
        """
        if self._file is None or self._locked is None:
            return
        path = self._file.lock_file
        if not os.path.exists(path) or not os.path.samestat(os.stat(path), self._locked):
            self._file.release()
            self._file = None
            self.acquire()

    def hold(self) -> None:
        """Take the right again if a Postgres server has forgotten it: it goes with the session that took it.

        Raises
        ------
        DBAPIError
            If the server does not answer.
        MasterStartError
            If another master has taken it meanwhile.
        """
        if self._url.get_backend_name() == "sqlite":
            return
        if self._connection is not None:
            try:
                self._connection.execute(text("SELECT 1"))
            except DBAPIError:
                lost, self._connection = self._connection, None
                lost.invalidate()
                lost.close()
            else:
                return
        self.acquire()

    def release(self) -> None:
        """Give the right back."""
        if self._file is not None:
            self._file.release()
            self._file = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lock_file(self) -> bool:
        if not self._url.database:
            return True
        path = Path(self._url.database).resolve()
        lock = FileLock(os.fspath(path.with_name(path.name + ".lock")), timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return False
        self._file, self._locked = lock, os.stat(lock.lock_file)
        return True

    def _lock_advisory(self) -> bool:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": ADVISORY_LOCK}).scalar():
            connection.close()
            return False
        connection.detach()  # closing it must end the session, which holds the lock
        self._connection = connection
        return True
