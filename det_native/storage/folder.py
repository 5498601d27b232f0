"""A folder of immutable files under keys, on this machine or in an object store, with the few verbs that storage needs.

Keys are relative paths with forward slashes, made by this package from checked hashes and UUIDs. A file appears under
its key whole or not at all.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from det_native.storage.frames import Buffer

INCOMING = ".incoming"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_IOV_MAX = 512


class Folder(Protocol):
    """What blobs and checkpoints are kept in."""

    uri: str
    local: bool

    def exists(self, key: str) -> bool:
        """Return whether a file lies under `key`."""

    def size(self, key: str) -> int:
        """Return the bytes under `key`; FileNotFoundError if there are none."""

    def open(self, key: str) -> IO[bytes]:
        """Open for reading; FileNotFoundError if there is nothing."""

    def publish(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Make a file out of `pieces` and let it appear under `key`, replacing what was there."""

    def publish_file(self, key: str, source: Path) -> None:
        """Copy `source`, and let it appear under `key`."""

    def copy(self, source: str, key: str) -> bool:
        """Let the file of the key `source` appear under `key` too, without reading it; return whether that is done."""

    def delete(self, key: str) -> None:
        """Remove the file under `key`, if there is one."""

    def delete_tree(self, key: str) -> None:
        """Remove everything under the folder `key`, if there is anything."""

    def children(self) -> list[str]:
        """Return the names of the first-level folders."""


class LocalFolder:
    """A folder of this machine, by system calls."""

    local = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uri = str(root)
        self._prefix = self.uri.rstrip("/") + "/"
        self._incoming = self._prefix + INCOMING
        self._made: set[str] = set()

    def path(self, key: str) -> str:
        """Return where the file of `key` lies."""
        return self._prefix + key

    def exists(self, key: str) -> bool:
        """Return whether a file with content lies under `key`.

        An empty file is what a power cut leaves of one that was never written out; no blob and no manifest is empty.
        """
        try:
            return os.stat(self._prefix + key).st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    def size(self, key: str) -> int:
        """Return the bytes under `key`."""
        return os.stat(self._prefix + key).st_size

    def open(self, key: str) -> IO[bytes]:
        """Open for reading, unbuffered: what is read is read in blocks already."""
        return open(self._prefix + key, "rb", buffering=0)

    def create(self) -> tuple[int, str]:
        """Open a new file for writing, on the same file system as the files; return its descriptor and its name."""
        name = self._temporary()
        try:
            return os.open(name, _CREATE, 0o600), name
        except FileNotFoundError:  # somebody removed the folder since we made it
            os.makedirs(self._incoming, mode=0o700, exist_ok=True)
            return os.open(name, _CREATE, 0o600), name

    def create_folder(self) -> str:
        """Make a new folder on the same file system as the files, and return its name."""
        name = self._temporary()
        os.makedirs(name, mode=0o700)
        return name

    def device(self) -> int:
        """Return the number of the file system, to learn what can be renamed into here."""
        self._ensure(self.uri)
        return os.stat(self.root).st_dev

    def _temporary(self) -> str:
        self._ensure(self._incoming)
        return f"{self._incoming}/{os.getpid()}-{secrets.token_hex(8)}"

    def publish(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Write under a temporary name and rename."""
        descriptor, temporary = self.create()
        try:
            try:
                write_all(descriptor, pieces)
            finally:
                os.close(descriptor)
            self.adopt(temporary, key)
        except BaseException:
            remove_file(temporary)
            raise

    def adopt(self, temporary: str, key: str) -> None:
        """Let a complete file made by :meth:`create` appear under `key`."""
        target = self._prefix + key
        self._ensure(os.path.dirname(target))
        try:
            os.rename(temporary, target)
        except FileNotFoundError:  # somebody removed the folder since we made it
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(temporary, target)

    def publish_file(self, key: str, source: Path) -> None:
        """Copy by the kernel where it can, and rename."""
        descriptor, temporary = self.create()
        os.close(descriptor)
        try:
            shutil.copyfile(source, temporary)
            self.adopt(temporary, key)
        except BaseException:
            remove_file(temporary)
            raise

    def copy(self, source: str, key: str) -> bool:
        """Leave it: reading and writing a file of this machine costs little."""
        return False

    def delete(self, key: str) -> None:
        """Remove the file under `key`, if there is one."""
        remove_file(self._prefix + key)

    def mark_changed(self) -> None:
        """Have the folder look changed (by its time) to other processes; one that cannot be written to stays."""
        with suppress(OSError):
            now = time.time_ns()
            os.utime(self.root, ns=(now, now))

    def delete_tree(self, key: str) -> None:
        """Rename away first, so that a crash in the middle leaves nothing that looks whole."""
        temporary = self._temporary()
        try:
            os.rename(self._prefix + key, temporary)
        except FileNotFoundError:
            return
        shutil.rmtree(temporary)

    def children(self) -> list[str]:
        """Return the names of the first-level folders."""
        try:
            with os.scandir(self.root) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def remove_leftovers(self, older_than: float = 86_400.0) -> None:
        """Remove what writers left that crashed more than `older_than` seconds ago."""
        horizon = time.time() - older_than
        try:
            entries = list(os.scandir(self._incoming))
        except FileNotFoundError:
            return
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime > horizon:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                remove_file(entry.path)

    def _ensure(self, directory: str) -> None:
        if directory not in self._made:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            self._made.add(directory)


def write_all(descriptor: int, pieces: Iterable[Buffer]) -> None:
    """Write all of `pieces`, in few system calls."""
    views = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
    while views:
        written = os.writev(descriptor, views[:_IOV_MAX])
        while views and written >= len(views[0]):
            written -= len(views[0])
            views.pop(0)
        if written:
            views[0] = views[0][written:]


def buffered(stream: IO[bytes]) -> IO[bytes]:
    """Return `stream` such that a read comes back short only at the end."""
    return io.BufferedReader(stream, 1 << 20) if isinstance(stream, io.RawIOBase) else stream


def remove_file(path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
