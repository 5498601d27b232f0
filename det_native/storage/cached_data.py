"""Files of a store of data that is far away, each brought to this machine once, however many processes want it.

A file arrives in the cache piece by piece, under a lock; whoever waits for it finds it there. What was cut off goes on
where it was.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.errors import StorageError
from det_native.schema.manifests import FileEntry
from det_native.storage.datasets import MODE, DataStore
from det_native.storage.folder import write_all
from det_native.storage.paths import check_sha256
from det_native.storage.remote_folder import RemoteFolder
from det_native.storage.room import storage_error

_AT_ONCE = 8
_PIECE = 8 << 20
_BUFFER = 1 << 20


def lost_sentence(path: str) -> str:
    """Say that the store has a file no more."""
    return f"{path!r} is no longer in the cluster's store of data: bring it there again (`det data put`)."


class DataCache:
    """A folder of this machine with files of a store that is far away, by the hash of their content.

    Parameters
    ----------
    options : mapping
        What fsspec's file system takes beside the address, secrets among it.
    folder : Path
        As a :class:`DataStore` has it.
    """

    def __init__(self, uri: str, options: Mapping[str, Any], folder: Path) -> None:
        self._remote = RemoteFolder(uri, options)
        self._store = DataStore(folder)
        self.folder = folder

    def bring(self, files: Sequence[FileEntry]) -> None:
        """Have these files here.

        Raises
        ------
        StorageError
            If one is not in the store any more, is damaged there, or cannot be read now.
        DiskFullError
            If there is no room for them here.
        """
        different = {file.sha256: file for file in files if not self._store.refresh(file.sha256)}
        if not different:
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(different)), thread_name_prefix="det-data") as threads:
            list(threads.map(self._bring, different.values()))

    def _bring(self, file: FileEntry) -> None:
        place = self._store.path_of(file.sha256)
        partial = self.folder / "partial" / check_sha256(file.sha256)
        try:
            for folder in (place.parent, partial.parent):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _alone(partial) as descriptor:
                if place.exists():  # another process has brought it, or has just begun to
                    partial.unlink(missing_ok=True)
                    return
                begun = os.fstat(descriptor).st_size
                found = self._download(file, descriptor)
                if found != file.sha256 and begun:  # what an earlier process has left may be damaged by a power cut
                    os.ftruncate(descriptor, 0)
                    found = self._download(file, descriptor)
                if found != file.sha256:
                    partial.unlink()
                    raise StorageError(
                        f"The content of {file.path!r} in the cluster's store of data, {self._remote.uri}, is not what "
                        "was brought there: remove it (`det data remove`), and bring it again (`det data put`)."
                    )
                partial.chmod(MODE)
                partial.replace(place)
        except OSError as error:
            raise storage_error(f"{file.path!r} cannot be brought from {self._remote.uri}: {error}.", error) from error

    def _download(self, file: FileEntry, descriptor: int) -> str:
        """Bring what is missing, and return the hash of the whole."""
        digest = hashlib.sha256()
        offset = 0
        while block := os.pread(descriptor, _BUFFER, offset):
            digest.update(block)
            offset += len(block)
        while offset < file.size:
            try:
                block = self._remote.read(f"contents/{file.sha256[:2]}/{file.sha256}", offset, _PIECE)
            except FileNotFoundError as error:
                raise StorageError(lost_sentence(file.path)) from error
            if not block:
                break
            write_all(descriptor, (block,))
            digest.update(block)
            offset += len(block)
        return digest.hexdigest()


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """Open a file for adding to it, for one process at a time."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                yield descriptor
                return
        finally:
            os.close(descriptor)
