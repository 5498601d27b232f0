"""SHA-256 of files, remembered by size, times and inode, so that an unchanged directory costs no reading.

The memory is kept in the process and in a small SQLite file that all kernels of the user share. It is only a cache:
where it cannot be read or written, files are hashed again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from det_native.errors import CaptureError, Problem
from det_native.schema.home import FILE_HASHES

_RACY_NS = 2_000_000_000
_BUFFER = 1 << 20
_GROUP = 4 << 20
_ATTEMPTS = 3
# What is read is kept until it is sent, so that it is sent as it was then; of larger files only the hash.
_KEPT_FILE = 16 << 20
_KEPT_TOTAL = 128 << 20
_KEEP_DAYS = 90
_DAY = 86_400
_QUERY = 500
_VERSION = 1

logger = logging.getLogger("det_native")


class FileStat(NamedTuple):
    """What tells that a file has not changed; times in ns.

    `ctime_ns` shows changes that put the old `mtime_ns` back.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileStat:
        """Take what is needed from a result of ``os.stat``."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


class FileHash(NamedTuple):
    """A file's content hash and the state of the file that it holds for.

    `settled` is false if the file was changed so shortly before it was read, or while it was, that a change after could
    go unseen. `content` is what was read, where it was read just now and is not too large.
    """

    sha256: str
    stat: FileStat
    settled: bool
    content: bytes | None = None


def default_cache_path() -> Path:
    """Return where the hashes are kept: under ``DET_HOME`` if that is set, else in the user's cache directory."""
    home = os.environ.get("DET_HOME")
    if home:
        return Path(home).expanduser() / FILE_HASHES
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "det_native" / FILE_HASHES.name


class HashCache:
    """Hashes files, and remembers the hashes.

    Parameters
    ----------
    path : Path, optional
        The SQLite file; default :func:`default_cache_path`.
    clock : callable, optional
        Wall clock in ns, that of the file system's times.
    busy_seconds : float
        How long to wait for another kernel that writes the file.
    """

    def __init__(
        self, path: Path | None = None, *, clock: Callable[[], int] = time.time_ns, busy_seconds: float = 2.0
    ) -> None:
        self._path = path or default_cache_path()
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._known: dict[str, FileHash] = {}
        self.files_read = 0

    def hash_files(self, files: Sequence[tuple[str, FileStat | None]]) -> list[FileHash]:
        """Return the hashes of files, in order.

        Parameters
        ----------
        files : sequence of (path, FileStat or None)
            With what ``os.stat`` just said of the file, if that is known.

        Raises
        ------
        CaptureError
            Files cannot be read; lists all of them.

        Notes
        -----
        A file that changes meanwhile is no error: its hash is that of what was read.
        """
        problems: dict[str, str] = {}
        stats: dict[str, FileStat] = {}
        for path, known_stat in files:
            if known_stat is None:
                try:
                    known_stat = FileStat.of(os.stat(path))
                except OSError as error:
                    problems[path] = f"cannot be read: {error.strerror}."
                    continue
            stats[path] = known_stat
        unknown = [path for path, found in stats.items() if not self._is_known(path, found)]
        read: dict[str, FileHash] = {}
        if unknown:
            self._recall(unknown, stats)
            problems |= self._hash(
                [(path, stats[path]) for path in unknown if not self._is_known(path, stats[path])], read
            )
        if problems:
            raise CaptureError(
                "Files that belong to the call cannot be sent:",
                [Problem(path, what, "Fix that and run the call again.") for path, what in problems.items()],
            )
        return [read.get(path) or self._known[path] for path, _ in files]

    def _is_known(self, path: str, found: FileStat) -> bool:
        known = self._known.get(path)
        return known is not None and known.settled and known.stat == found

    def _recall(self, paths: Sequence[str], stats: dict[str, FileStat]) -> None:
        """Take over from disk what still holds."""
        with self._database(write=False) as database:
            if database is None:
                return
            for start in range(0, len(paths), _QUERY):
                some = paths[start : start + _QUERY]
                marks = ",".join("?" * len(some))
                rows = database.execute(
                    f"SELECT path, size, mtime_ns, ctime_ns, inode, sha256 FROM hashes WHERE path IN ({marks})", some
                )
                for path, size, mtime_ns, ctime_ns, inode, sha256 in rows:
                    found = stats[path]
                    if found[:4] == (size, mtime_ns, ctime_ns, inode):
                        self._known[path] = FileHash(sha256, found, True)

    def _hash(self, files: Sequence[tuple[str, FileStat]], read: dict[str, FileHash]) -> dict[str, str]:
        """Read and hash files with several threads into `read`; return what went wrong, by path."""
        groups = list(_groups(files))
        workers = min(os.cpu_count() or 1, 8, len(groups))
        if workers < 2:
            done = [self._hash_group(group) for group in groups]
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="det-hash") as pool:
                done = list(pool.map(self._hash_group, groups))
        problems: dict[str, str] = {}
        settled: dict[str, FileHash] = {}
        for path, result in (one for group in done for one in group):
            if isinstance(result, str):
                problems[path] = result
                continue
            read[path] = result
            self._known[path] = result._replace(content=None)
            self.files_read += 1
            if result.settled:
                settled[path] = result
        self._keep(settled)
        return problems

    def _hash_group(self, group: Sequence[tuple[str, bool]]) -> list[tuple[str, FileHash | str]]:
        buffer = bytearray(_BUFFER)
        results: list[tuple[str, FileHash | str]] = []
        for path, kept in group:
            try:
                results.append((path, self._hash_file(path, buffer, kept=kept)))
            except OSError as error:
                results.append((path, f"cannot be read: {error.strerror}."))
        return results

    def _hash_file(self, path: str, buffer: bytearray, *, kept: bool) -> FileHash | str:
        """Read what a file holds at its opening; one that is written anew meanwhile is read again, some times."""
        for attempt in range(1, _ATTEMPTS + 1):
            started = self._clock()
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
            try:
                before = FileStat.of(os.fstat(descriptor))
                if not stat.S_ISREG(before.mode):
                    return "is no plain file."
                pieces: list[bytes] | None = [] if kept and before.size <= _KEPT_FILE else None
                sha256, size = _digest(descriptor, buffer, before.size, pieces)
                after = FileStat.of(os.fstat(descriptor))
            finally:
                os.close(descriptor)
            content = None if pieces is None else b"".join(pieces)
            if before == after and size == after.size:
                settled = max(after.mtime_ns, after.ctime_ns) < started - _RACY_NS
                return FileHash(sha256, after, settled, content)
            if after.size > before.size or attempt == _ATTEMPTS:  # a log, most likely
                break
        return FileHash(sha256, before._replace(size=size), False, content)

    def _keep(self, hashes: dict[str, FileHash]) -> None:
        if not hashes:
            return
        day = self._clock() // 1_000_000_000 // _DAY
        rows = [(path, *one.stat[:4], one.sha256, day) for path, one in hashes.items()]
        with self._database(write=True) as database:
            if database is not None:
                database.executemany("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                database.execute("DELETE FROM hashes WHERE day < ?", (day - _KEEP_DAYS,))

    @contextmanager
    def _database(self, *, write: bool) -> Iterator[sqlite3.Connection | None]:
        """Yield the open file, to write to in a transaction, or None where there can be none.

        It is opened anew each time, which costs less than reading one file: nothing is shared between threads or
        inherited by forks.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            database = sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            logger.debug("No file hashes are remembered in %s: %s", self._path, error)
            yield None
            return
        with closing(database):
            try:
                _prepare(database)
                if write:
                    database.execute("BEGIN IMMEDIATE")
                os.chmod(self._path, 0o600)
            except (OSError, sqlite3.Error) as error:
                self._distrust(error)
                yield None
                return
            try:
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
            except sqlite3.Error as error:
                self._distrust(error)

    def _distrust(self, error: Exception) -> None:
        """Remove a file that is damaged; leave one alone that is only busy or may not be written."""
        logger.debug("The file hashes in %s cannot be used: %s", self._path, error)
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            remove_cache(self._path)


def remove_cache(path: Path) -> None:
    """Remove a file of hashes, if it is there, with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA synchronous = OFF")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == _VERSION:
        return
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    database.execute("DROP TABLE IF EXISTS hashes")
    database.execute(
        "CREATE TABLE hashes (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode INTEGER,"
        " sha256 TEXT, day INTEGER) WITHOUT ROWID"
    )
    database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")


def _digest(descriptor: int, buffer: bytearray, limit: int, pieces: list[bytes] | None) -> tuple[str, int]:
    """Hash the first `limit` bytes of a file, and add them to `pieces`; return the hash, and how many there were."""
    digest = hashlib.sha256()
    size = 0
    with memoryview(buffer) as view:
        while size < limit and (count := os.readv(descriptor, [view[: limit - size]])):
            size += count
            digest.update(view[:count])
            if pieces is not None:
                pieces.append(bytes(view[:count]))
    return digest.hexdigest(), size


def _groups(files: Sequence[tuple[str, FileStat]]) -> Iterator[list[tuple[str, bool]]]:
    """Gather files into groups of about the same number of bytes, the largest first, so that no thread ends late.

    With each file stands whether its content is kept: of the smallest ones, as many as there is room for.
    """
    group: list[tuple[str, bool]] = []
    size = 0
    room = sum(found.size for _, found in files)
    for path, found in sorted(files, key=lambda one: one[1].size, reverse=True):
        group.append((path, room <= _KEPT_TOTAL))
        room -= found.size
        size += found.size + (16 << 10)
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group
