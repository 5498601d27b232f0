"""Blobs that nobody needs: which they are, and how they are deleted beside uploads that go on."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Connection, Text, cast, select

from det_native.master.store.tables import artifacts, bundles, experiments, media
from det_native.storage.blobs import BlobStore

#: Blobs and bundles that are newer than this are on their way to an experiment, maybe.
NEW_SECONDS = 6 * 3600.0
#: A client that was told that blobs are here, and need not be sent, has so long to submit what it is about.
TOLD_SECONDS = 2 * 3600.0

_HASH = re.compile(r"\b[0-9a-f]{64}\b")


class BlobGuard:
    """Keeps blobs that clients were told are here from being deleted. Its methods may be called from any thread.

    Parameters
    ----------
    clock : callable
        Seconds, rising.
    """

    def __init__(self, blobs: BlobStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._blobs = blobs
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def keep(self, hashes: Iterable[str]) -> None:
        """Have these blobs stay for a while. Called before it is told that they are here."""
        with self._lock:
            now = self._clock()
            if len(self._until) > 100_000:
                self._until = {sha256: until for sha256, until in self._until.items() if until > now}
            self._until.update(dict.fromkeys(hashes, now + TOLD_SECONDS))

    @contextmanager
    def _held(self) -> Iterator[set[str]]:
        with self._lock:
            now = self._clock()
            yield {sha256 for sha256, until in self._until.items() if until > now}

    def deletable(self, hashes: Iterable[str]) -> dict[str, int]:
        """Return those that nobody was told of, with the bytes that each takes."""
        with self._held() as held:
            wanted = {sha256 for sha256 in hashes if sha256 not in held}
        return {sha256: size for sha256 in wanted if (size := self._blobs.size(sha256)) is not None}

    def delete(self, hashes: Iterable[str], written_before: float | None = None) -> dict[str, int]:
        """Delete those that nobody was told of; return which they were, with the bytes that each took.

        Safe to break off: a blob is there whole or not at all, and what is left the next call deletes.

        Parameters
        ----------
        written_before : float, optional
            Leave those that have been written, or reported again, since this time (seconds since 1970).
        """
        deleted: dict[str, int] = {}
        for sha256 in sorted(hashes):
            with self._lock:  # for each one: whoever is told of blobs does not wait for the rest
                if self._until.get(sha256, 0.0) > self._clock():
                    continue
                if written_before is not None and (self._blobs.modified(sha256) or 0.0) >= written_before:
                    continue
                size = self._blobs.size(sha256)
                if size is not None:
                    self._blobs.delete(sha256)
                    self._blobs.tell_loss()  # at once: a bundle that was complete may not be any more
                    deleted[sha256] = size
        return deleted


def unneeded(connection: Connection, blobs: BlobStore) -> set[str]:
    """Return the stored blobs that no experiment and no schedule needs, without the new ones.

    Those may be on their way to an experiment.

    Returns
    -------
    set of str
        To be deleted with :meth:`BlobGuard.delete`, which leaves those that a client was told are here.
    """
    horizon = new_since()
    old = {entry.sha256 for entry in blobs.entries() if entry.modified < horizon}
    if not old:
        return old
    created = datetime.fromtimestamp(horizon, UTC).isoformat(timespec="milliseconds")
    begun = select(cast(bundles.c.manifest, Text)).where(bundles.c.created > created)
    return old - _needed(connection) - _hashes(connection.execute(begun).scalars())


def new_since() -> float:
    """Return since when what was written counts as new, in seconds since 1970."""
    return time.time() - NEW_SECONDS


def _needed(connection: Connection) -> set[str]:
    """Return all hashes in programs and executed notebooks of experiments, and those that trials have reported."""
    programs = select(experiments.c.bundle_id)
    chosen = select(cast(bundles.c.manifest, Text)).where(bundles.c.id.in_(programs))
    needed = _hashes(connection.execute(chosen).scalars())
    for table in (artifacts, media):
        reported = select(table.c.sha256).where(table.c.sha256.is_not(None)).distinct()
        needed.update(connection.execute(reported).scalars())
    notebooks = select(experiments.c.notebook).where(experiments.c.notebook.is_not(None))
    needed.update(connection.execute(notebooks).scalars())
    return needed


def _hashes(texts: Iterable[str]) -> set[str]:
    """Return whatever looks like a hash in manifests: a field that comes later is not forgotten here."""
    return {sha256 for text in texts for sha256 in _HASH.findall(text)}
