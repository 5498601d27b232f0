"""Trials whose bundle has lost files in the master's store: they go on once somebody has sent those anew."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from sqlalchemy import Connection

from det_native.errors import StorageError
from det_native.master.store import bundles
from det_native.schema.rest import ExitReport
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

WAITS_FOR_FILES = "waits for files of its bundle"
# The errors that a worker ends with where it cannot read its bundle.
_ERRORS = frozenset({"BundleCorruptError", "StorageError"})
_LOOK_SECONDS = 1.0
_UNREACHABLE_SECONDS = 30.0


class LostFiles:
    """Which trials wait for which blobs. Kept in memory: the next master tries them at once.

    Parameters
    ----------
    blobs : BlobStore
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._waits: dict[int, list[str]] = {}
        self._looked = 0.0

    @property
    def trials(self) -> set[int]:
        """The trials that wait."""
        return set(self._waits)

    def sentence(self, connection: Connection, bundle_id: str | None, exit: ExitReport | None) -> str:
        """Return which files a run has ended for since the store has lost them, "" if it has not."""
        if bundle_id is None or exit is None or exit.error is None or exit.error.type not in _ERRORS:
            return ""
        manifest = bundles.get(connection, bundle_id)
        lost = set(self._lost(manifest.hashes()) or ())
        paths = [repr(entry.path) for entry in manifest.files if entry.sha256 in lost]
        others = f" and {len(paths) - 1} others" if len(paths) > 1 else ""
        lost_parts = f"{paths[0]}{others}" if paths else "a value of the notebook"
        return f"{WAITS_FOR_FILES} ({lost_parts}), lost in the master's store: submit the same again" if lost else ""

    def add(self, connection: Connection, trial_id: int, bundle_id: str) -> None:
        """Have a trial wait until the lost blobs of its bundle are there again."""
        hashes = bundles.get(connection, bundle_id).hashes()
        lost = self._lost(hashes)
        self._waits[trial_id] = sorted(hashes) if lost is None else lost

    def release(self, waits: Callable[[int], bool]) -> bool:
        """Let those go whose files are there again, or of which `waits` says that they wait no longer.

        Returns whether there are any.
        """
        now = time.monotonic()
        if not self._waits or now - self._looked < _LOOK_SECONDS:
            return False
        self._looked = now
        items = self._waits.items()
        ready = [trial for trial, hashes in items if not waits(trial) or self._lost(hashes) == []]
        for trial in ready:
            del self._waits[trial]
        return bool(ready)

    def _lost(self, hashes: Iterable[str]) -> list[str] | None:
        """Return which are lost; None where the storage cannot be asked now, which is then left alone for a while."""
        try:
            return self._blobs.lost(sorted(hashes))
        except (OSError, StorageError) as error:
            logger.warning("Whether the storage of bundles has lost files is not known now: %s", error)
            self._looked = time.monotonic() + _UNREACHABLE_SECONDS
            return None
