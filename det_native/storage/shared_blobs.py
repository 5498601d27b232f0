"""The blobs of a master that keeps them where all machines reach them: in an object store, say.

What the home has from before stays there and is read there. To S3 each question is a request, so the store remembers
what it has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from det_native.storage.blobs import BlobStore, StoredBlob
from det_native.storage.frames import Buffer

_THREADS = 16
# What is asked of more than so many blobs is answered by the list of all, once there is one.
_LIST_KNOWS = 64


class SharedBlobs(BlobStore):
    """Blobs at an address, and those that a home has from before. Threads may share it.

    Parameters
    ----------
    options : mapping
        What fsspec's file system takes beside the address, secrets among it.
    before : Path
        The folder of the home.
    """

    def __init__(self, uri: str, options: Mapping[str, Any], before: Path) -> None:
        super().__init__(uri, options, prompt=True)
        self._before = BlobStore(str(before))
        self._lock = threading.Lock()
        self._there: set[str] = set()
        self._listed = False
        self._losses = 0

    @property
    def before(self) -> BlobStore:
        """What the home has."""
        return self._before

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._before or not self.missing([sha256])

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Return those that are not at the address, in their order, each once; what is known is not asked for."""
        wanted = list(dict.fromkeys(hashes))
        with self._lock:
            unknown = [sha256 for sha256 in wanted if sha256 not in self._there]
            if self._listed and len(unknown) > _LIST_KNOWS:
                return unknown  # one that a worker has put there since is sent once more
        lost = set(self._looked_for(unknown))
        return [sha256 for sha256 in wanted if sha256 in lost]

    def lost(self, hashes: Iterable[str]) -> list[str]:
        """Return those that are neither at the address nor in the home, looked for anew."""
        wanted = [sha256 for sha256 in dict.fromkeys(hashes) if sha256 not in self._before]
        with self._lock:
            self._there.difference_update(wanted)
        lost = self._looked_for(wanted)
        with self._lock:
            self._losses += bool(lost)
        return lost

    def place_of(self, hashes: Iterable[str]) -> str:
        """Return where a reader finds all of these: in the home, if that has them all."""
        return place_of(hashes, self.uri, self._before)

    def list_all(self) -> None:
        """Learn what is there, by some requests for all."""
        there = {entry.sha256 for entry in super().entries()}
        with self._lock:
            self._there |= there
            self._listed = True

    def _looked_for(self, unknown: list[str]) -> list[str]:
        if not unknown:
            return []
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="det-blobs") as threads:
            found = list(threads.map(super().__contains__, unknown))
        with self._lock:
            self._there.update(sha256 for sha256, there in zip(unknown, found, strict=True) if there)
        return [sha256 for sha256, there in zip(unknown, found, strict=True) if not there]

    def generation(self) -> object:
        """Return what differs once a blob has been lost, or the home has."""
        with self._lock:
            return self._losses, self._before.generation()

    def blocks(self, sha256: str) -> Iterator[Buffer]:
        """Yield the raw blocks of a blob, the home's if it is there."""
        return self._before.blocks(sha256) if sha256 in self._before else super().blocks(sha256)

    def entries(self) -> Iterator[StoredBlob]:
        """Yield the blobs, those of both places twice."""
        yield from self._before.entries()
        yield from super().entries()

    def size(self, sha256: str) -> int | None:
        """Return the bytes that a blob takes, None if it is not there."""
        found = self._before.size(sha256)
        return super().size(sha256) if found is None else found

    def modified(self, sha256: str) -> float | None:
        """Return when a blob was last written, in seconds since 1970; None if it is not there."""
        return max(filter(None, (self._before.modified(sha256), super().modified(sha256))), default=None)

    def delete(self, sha256: str) -> None:
        """Remove a blob, if it is there."""
        with self._lock:
            self._there.discard(sha256)
        self._before.delete(sha256)
        super().delete(sha256)

    def tell_loss(self) -> None:
        """Have every process that remembers which blobs are here look again."""
        with self._lock:
            self._losses += 1
        self._before.tell_loss()

    def remove_leftovers(self) -> int:
        """Remove what writers left that crashed more than a day ago."""
        return self._before.remove_leftovers() + super().remove_leftovers()

    def _stored(self, sha256: str, size: int) -> None:
        with self._lock:
            self._there.add(sha256)


def place_of(hashes: Iterable[str], uri: str, before: BlobStore) -> str:
    """Return where all of these blobs are: at the store of the home, if that has them all, otherwise at `uri`."""
    wanted = list(hashes)
    return before.uri if wanted and not before.missing(wanted) else uri
