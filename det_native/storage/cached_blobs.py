"""Blobs of a storage that is far away, each brought to this machine once, into a folder that its processes share."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from det_native.errors import BundleCorruptError, StorageError
from det_native.storage.blobs import BlobStore
from det_native.storage.frames import Buffer, FrameError

_THREADS = 16

logger = logging.getLogger("det_native")


class _CopyDamagedError(BundleCorruptError):
    """What this machine has of a blob is damaged; it is removed then."""


class CachedBlobs(BlobStore):
    """The blobs at an address, read from a folder of this machine where that has them. Put are they at the address.

    Parameters
    ----------
    options : mapping
        What fsspec's file system takes beside the address, secrets among it.
    folder : Path
        Of this machine; a blob appears there once it is verified.
    """

    def __init__(self, uri: str, options: Mapping[str, Any], folder: Path) -> None:
        super().__init__(uri, options)
        self._near = BlobStore(str(folder))

    def fetch(self, hashes: Iterable[str]) -> None:
        """Bring those that are not here yet, many at once. What cannot be had is told when it is read."""
        wanted = self._near.missing(hashes)
        if wanted:
            with ThreadPoolExecutor(min(_THREADS, len(wanted)), thread_name_prefix="det-blobs") as threads:
                list(threads.map(self._bring, wanted))

    def blocks(self, sha256: str) -> Iterator[Buffer]:
        """Yield the raw blocks of a blob; see :meth:`BlobStore.blocks`."""
        if sha256 in self._near or self._bring(sha256):
            try:
                yield from self._near.blocks(sha256)
                return
            except BundleCorruptError as error:
                raise _CopyDamagedError(f"The copy of blob {sha256} on this machine was damaged.") from error
        yield from super().blocks(sha256)

    def read(self, sha256: str) -> bytes:
        """Return the raw content of a blob, verified."""
        try:
            return super().read(sha256)
        except _CopyDamagedError:  # and removed
            return super().read(sha256)

    def write_to(self, sha256: str, path: Path | str, mode: int = 0o644) -> int:
        """Write the raw content of a blob into a new file; see :meth:`BlobStore.write_to`."""
        try:
            return super().write_to(sha256, path, mode)
        except _CopyDamagedError:
            return super().write_to(sha256, path, mode)

    def _bring(self, sha256: str) -> bool:
        """Bring a blob; whether that is done. A cache that cannot be written, or a blob that is damaged, is left."""
        try:
            with self.packed(sha256) as stream:
                self._near.put_stream(sha256, stream.read)
        except (FrameError, StorageError, OSError) as error:
            logger.debug("blob %s is not brought into the cache: %s", sha256, error)
            return False
        return True


def blobs_of_job(uri: str, options: Mapping[str, Any], cache: str) -> BlobStore:
    """Return the blobs of a job: read by the cache of this machine where they are far away, and there is one."""
    store = BlobStore(uri, options)
    return store if store.local or not cache else CachedBlobs(uri, options, Path(cache) / "blobs")
