"""What takes the disk of a master, by kind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, func, select

from det_native.master.flow.places import Places
from det_native.master.flow.unneeded_blobs import unneeded
from det_native.master.store.database import Database
from det_native.master.store.encoding import now
from det_native.master.store.tables import artifacts, bundles, events, experiments, logs, media, metrics
from det_native.schema.space import Space, SpaceUse
from det_native.storage.blobs import BlobStore
from det_native.storage.room import free_bytes
from det_native.storage.shared_blobs import SharedBlobs

# Kinds of what lies at the top of a home, by name, and whether folders in it are counted instead of files.
_KINDS = {
    "checkpoints": ("checkpoints", True),
    "runs": ("runs", True),
    "tensorboard": ("tensorboard", True),
    "data": ("data", False),
    "environments": ("environments", True),
    "backups": ("backups", False),
    "local": ("local runs", True),
    "standby": ("standbys", False),
    "master.log": ("logs of the master", False),
    "reserve": ("reserve", False),
}
# Of the cache, by its own folders.
_CACHES = {
    "datasets": "cached datasets",
    "checkpoints": "cached checkpoints",
    "blobs": "cached programs and files",
    "data": "cached data",
}
_HASHES = "file hashes"


def measure(database: Database, places: Places, blobs: BlobStore, budget: int | None) -> Space:
    """Return what takes the disk: every file of the home counts once, in one kind."""
    uses: dict[str, SpaceUse] = {}

    def add(kind: str, size: int, count: int, place: str) -> None:
        found = uses.get(kind, SpaceUse(kind=kind, bytes=0, count=0, place=place))
        uses[kind] = found.model_copy(update={"bytes": found.bytes + size, "count": found.count + count})

    seen: set[tuple[int, int]] = set()
    with database.read() as connection:
        rows = _rows(connection)
        shares = _Shares(connection, blobs.before if isinstance(blobs, SharedBlobs) else blobs)
    for entry in _entries(places.home):
        if entry.name == "blobs":
            shares.read()
            for kind, (size, count) in shares.found.items():
                add(kind, size, count, "blobs")
            size, _ = size_of(entry.path, seen)
            add("uploads", max(0, size - shares.total), 0, "blobs")
        elif entry.name == "cache":
            for inner in _entries(entry.path):
                size, files = size_of(inner.path, seen)
                kind = _CACHES.get(inner.name, _HASHES if inner.name.startswith("file-hashes") else "other caches")
                by_folder = inner.is_dir(follow_symlinks=False) and inner.name not in ("blobs", "data")
                add(kind, size, _folders(inner.path) if by_folder else files, "cache")
        else:
            size, files = size_of(entry.path, seen)
            kind, by_folder = _kind_of(entry.name)
            add(kind, size, _folders(entry.path) if by_folder else files, entry.name)
    for kind, (size, count) in rows.items():
        uses[kind] = SpaceUse(kind=kind, bytes=size, count=count, part_of="database")
    found = sorted(uses.values(), key=lambda use: (use.part_of is not None, -use.bytes, use.kind))
    return Space(
        home=str(places.home),
        uses=found,
        total=sum(use.bytes for use in found if use.part_of is None),
        free=free_bytes(places.home),
        budget=budget,
        measured=now(),
    )


def size_of(path: str | os.PathLike[str], seen: set[tuple[int, int]] | None = None) -> tuple[int, int]:
    """Return bytes and number of the files in a folder, or of a file; files with several names count once in `seen`.

    What goes while one looks is not counted, and no link is followed.
    """
    seen = set() if seen is None else seen
    size = count = 0
    waiting = [os.fspath(path)]
    while waiting:
        current = waiting.pop()
        try:
            found = os.lstat(current)
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(current) as entries:
                    waiting += [entry.path for entry in entries]
                continue
        except OSError:
            continue
        if found.st_nlink > 1:
            if (found.st_dev, found.st_ino) in seen:
                continue
            seen.add((found.st_dev, found.st_ino))
        if stat.S_ISREG(found.st_mode):
            size += found.st_size
            count += 1
    return size, count


class _Shares:
    """Blobs by what they are of; one that several need counts where it comes first."""

    def __init__(self, connection: Connection, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._doomed = unneeded(connection, blobs)
        self._artifacts = set(connection.execute(select(artifacts.c.sha256).distinct()).scalars())
        self._media = set(connection.execute(select(media.c.sha256).distinct()).scalars())
        self.found: dict[str, tuple[int, int]] = {}
        self.total = 0

    def read(self) -> None:
        """Look at all blobs."""
        for blob in self._blobs.entries():
            size, count = self.found.get(kind := self._kind(blob.sha256), (0, 0))
            self.found[kind] = (size + blob.size, count + 1)
            self.total += blob.size

    def _kind(self, sha256: str) -> str:
        if sha256 in self._doomed:
            return "unneeded blobs"
        if sha256 in self._media:
            return "media"
        return "artifacts" if sha256 in self._artifacts else "programs and files sent"


def _rows(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return about how many bytes, and how many rows, the largest tables have."""
    texts = {
        "output": (logs.c.text, logs),
        "metrics": (metrics.c["values"], metrics),
    }
    found = {}
    for kind, (column, table) in texts.items():
        row = connection.execute(
            select(func.coalesce(func.sum(func.length(column)), 0), func.count()).select_from(table)
        )
        size, count = row.one()
        found[kind] = (int(size), int(count))
    for kind, table in (("events", events), ("programs", bundles), ("experiments", experiments)):
        found[kind] = (0, int(connection.execute(select(func.count()).select_from(table)).scalar_one()))
    return found


def _kind_of(name: str) -> tuple[str, bool]:
    if name.startswith("det.db"):
        return "database", False
    if name.startswith("master.log"):
        return "logs of the master", False
    return _KINDS.get(name, ("other files", False))


def _entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return


def _folders(folder: str) -> int:
    return sum(entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") for entry in _entries(folder))
