"""The database behind the store: engine, transactions, and the lock that keeps a second master out."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError

from det_native.errors import MasterError, MasterStartError, MissingDependencyError, StorageError
from det_native.master.store import encoding, migrate
from det_native.master.store.address import described
from det_native.master.store.lease import Lease
from det_native.master.store.pyramid import Tails
from det_native.schema.rest import Event
from det_native.storage import backups
from det_native.storage.backups import DamagedDatabaseError
from det_native.storage.room import free_bytes

logger = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 10_000
# What a flood has written ahead does not keep its room afterwards.
LARGEST_LOG = 16 << 20
SQLITE_FULL = 13
SQLITE_DAMAGED = frozenset({11, 26})  # malformed; not a database
SQLITE_UNWRITABLE = frozenset({8, 10, 14})  # read-only; an error of the disk; its files cannot be opened
# A connection that failed; a server that is stopped, has crashed, or still starts.
POSTGRES_AWAY = ("08", "57P01", "57P02", "57P03")

WAY_OUT = "`det master restore` puts the newest backup in its place; what is there now is kept aside."


@dataclass(frozen=True)
class Fault:
    """Why nothing can be stored, though there is room and the database is sound, and since when.

    Attributes
    ----------
    what : str
        The reason.
    since : str
        When it was noticed.
    server : str
        The address of the database's server, if that does not answer.
    """

    what: str
    since: str
    server: str = ""


@dataclass
class Transaction:
    """A write in progress: its connection, and what will be told to the waiting once it is committed.

    Attributes
    ----------
    connection : Connection
        Where the statements go.
    tails : Tails
        Open ends of the down-sampled series; forgotten if the transaction fails.
    emitted : list of (owner, Event)
        Events written in this transaction, in order.
    """

    connection: Connection
    tails: Tails
    emitted: list[tuple[str, Event]]


class Database:
    """A migrated database with one writer at a time and any number of readers.

    Parameters
    ----------
    url : str
        SQLAlchemy URL, ``sqlite:///path`` or ``postgresql+psycopg://...``.
    on_commit : callable, optional
        Called with the events of a transaction right after its commit, before the next writer may start: so events
        are published in the order of their ids.

    Raises
    ------
    MasterStartError
        If another master uses the database, a newer version of the code has migrated it, or it is damaged.
    """

    def __init__(self, url: str, on_commit: Callable[[list[tuple[str, Event]]], None] | None = None) -> None:
        self.url = make_url(url)
        self._on_commit = on_commit
        self._writer = threading.Lock()
        self._tails = Tails()
        self._closed = False
        self._damage: str | None = None
        self.fault: Fault | None = None
        # Milliseconds since 1970 at which the last fault was over, 0 if there was none.
        self.recovered_at = 0
        self.on_fault: Callable[[], None] = lambda: None
        self._engine = _engine(self.url)
        self._lease = Lease(self.url, self._engine)
        try:
            self._lease.acquire()
        except OperationalError as error:  # of a server: that of a file asks the file system
            self._engine.dispose()
            raise MasterStartError(
                f"The database {described(self.url)} cannot be opened: {_reason(error)}. Start its server, or correct "
                "DET_DATABASE, then start the master again."
            ) from None
        try:
            if self.file is not None:
                backups.check(self.file)
            with self._connect(write=True, migrating=True) as connection:
                migrate.upgrade(connection, self._back_up)
            if self.file is not None:
                self._engine.dispose()  # the connection that keeps no foreign keys
        except StorageError as error:
            self._damage = str(error)
            self.close()
            way_out = f" {WAY_OUT}" if isinstance(error, DamagedDatabaseError) else ""
            raise MasterStartError(f"{error}{way_out}") from error
        except BaseException:
            self.close()
            raise

    def _back_up(self) -> None:
        if self.file is not None:
            logger.info("before its form changes, the database is backed up: %s", backups.make(self.file).path)

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database; None for other databases, and for one in memory."""
        return Path(self.url.database).resolve() if self.dialect == "sqlite" and self.url.database else None

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one unchanging state of the database."""
        with self._connect(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Give a transaction; it commits at the end of the block and is undone by any exception."""
        with self._writer:
            if self._damage is not None:  # what still can be written would be lost with the next restoration
                raise DamagedDatabaseError(self._damage)
            self._hold()
            emitted: list[tuple[str, Event]] = []
            try:
                with self._connect(write=True) as connection:
                    yield Transaction(connection, self._tails, emitted)
            except BaseException:
                self._tails.forget_changed()
                raise
            self._tails.keep_changed()
            if self._on_commit is not None and emitted:
                self._on_commit(emitted)

    def _hold(self) -> None:
        """See that the right to write is still this master's: a server that was restarted has forgotten it."""
        try:
            self._lease.hold()
        except DBAPIError as error:
            if is_unwritable(error):
                self._note_fault_of(error)
            raise

    @property
    def size(self) -> int:
        """Bytes that its files take; 0 where they are not the master's."""
        if self.file is None:
            return 0
        paths = (self.file.with_name(self.file.name + end) for end in ("", "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def vacuum(self) -> None:
        """Write an SQLite database anew, without the room that it does not use; writers wait meanwhile.

        Raises
        ------
        StorageError
            If there is too little room to do it.
        """
        if self.file is None:
            return
        with self._writer:
            if self._damage is not None:
                raise DamagedDatabaseError(self._damage)
            needed, free = 2 * self.size, free_bytes(self.file)
            if free is not None and free < needed:
                raise StorageError(
                    f"To clean {self.file}, {needed / 1e6:.0f} MB have to be free for a while; {free / 1e6:.0f} MB are."
                )
            with self._noting_failures(), self._engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                    try:
                        driver.execute(statement)
                    except sqlite3.Error as error:  # as the engine, past which it went, would have it
                        raise DBAPIError.instance(statement, None, error, sqlite3.Error) from error

    def _note_fault_of(self, error: DBAPIError) -> None:
        words = str(error.orig).strip().splitlines()
        self.note_fault(words[0] if words else "", server="" if self.dialect == "sqlite" else described(self.url))

    def note_fault(self, what: str, server: str = "") -> None:
        """Note that nothing can be stored; the first word of it counts, until :meth:`try_to_write` succeeds."""
        if self.fault is None:
            self.fault = Fault(what, encoding.now(), server)
            logger.error("Nothing can be stored: %s.", what)
            self.on_fault()

    def try_to_write(self) -> None:
        """Write something that changes nothing, with files that are opened anew; if that works, the fault is over."""
        if self.file is not None and not self.file.exists():  # opened, it would be made anew, empty
            raise MasterError(f"{self.file} is gone.")
        self._lease.renew()
        self._engine.dispose()
        with self.write() as transaction:
            if self.dialect == "sqlite":  # to begin a transaction and end it would write nothing
                version = transaction.connection.exec_driver_sql("PRAGMA user_version").scalar_one()
                transaction.connection.exec_driver_sql(f"PRAGMA user_version = {version}")
        if self.fault is not None:
            self.recovered_at = time.time_ns() // 1_000_000
        self.fault = None
        logger.info("What happens is stored again.")

    def close(self) -> None:
        """Close all connections and let another master have the database."""
        with self._writer:
            self._closed = True
            if self.dialect == "sqlite" and self._damage is None:
                self._empty_log()
            self._engine.dispose()
            self._lease.release()

    def _empty_log(self) -> None:
        """Bring what SQLite has written ahead into the database file, which then is all of it."""
        try:
            with self._engine.connect() as connection:
                connection.connection.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[union-attr]
        except (DBAPIError, sqlite3.Error) as error:  # a full disk, say; the next start reads both files
            logger.warning("The database's write-ahead log is not emptied: %s", error)

    @contextmanager
    def _connect(self, *, write: bool, migrating: bool = False) -> Iterator[Connection]:
        if self._closed:
            raise MasterError("The master is shutting down.")
        with self._noting_failures(), self._engine.connect() as connection:
            connection = connection.execution_options(det_write=write, det_migrating=migrating)
            with connection.begin():
                yield connection

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """Note, of an error of the driver in the block, that nothing can be stored or that the file is damaged."""
        try:
            yield
        except DBAPIError as error:
            if is_unwritable(error):
                self._note_fault_of(error)
            if not is_damaged(error):
                raise
            self._damage = (
                f"The database {self.file} is damaged ({error.orig}). Stop the master (`det down`); {WAY_OUT}"
            )
            logger.critical("%s", self._damage)
            raise DamagedDatabaseError(self._damage) from error


def _reason(error: DBAPIError) -> str:
    """Return why a server has not let the master in: of several lines, the last one that says something."""
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    said = [line for line in lines if "failed:" in line or "FATAL" in line] or lines or ["it does not answer"]
    return said[-1].removeprefix("connection failed: ").rstrip(".")


def is_disk_full(error: BaseException) -> bool:
    """Whether a write failed because the disk is full."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        code = getattr(error.orig, "sqlite_errorcode", None)
        return (code is not None and code & 0xFF == SQLITE_FULL) or getattr(error.orig, "sqlstate", None) == "53100"
    return False


def is_unwritable(error: BaseException) -> bool:
    """Whether a statement failed because the file system of an SQLite file is read-only or has died, or a server is
    away.
    """
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in SQLITE_UNWRITABLE
    state = getattr(error.orig, "sqlstate", "00000")
    return state is None or state.startswith(POSTGRES_AWAY)  # no server has said why, for none has answered


def is_damaged(error: DBAPIError) -> bool:
    """Whether a statement failed because the SQLite file is damaged."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in SQLITE_DAMAGED


def _engine(url: URL) -> Engine:
    options: dict[str, Any] = {"json_serializer": encoding.dumps, "pool_size": 16, "max_overflow": 32}
    if url.get_backend_name() == "sqlite":
        if url.database:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = create_engine(url, **options)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(url, pool_pre_ping=True, isolation_level="REPEATABLE READ", **options)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"The database {described(url)} needs {error.name}: pip install 'det-native[postgres]'."
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not behind our back
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "foreign_keys=ON",
        f"journal_size_limit={LARGEST_LOG}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("det_migrating"):  # to make a table anew, which others refer to
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("det_write") else "BEGIN")
