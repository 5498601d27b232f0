"""Trials whose bundle has lost files in the master's store: they go on once somebody has sent those anew."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection

from det_native.master.store import bundles
from det_native.schema.rest import ExitReport
from det_native.storage.blobs import BlobStore

WAITS_FOR_FILES = "waits for files of its bundle"
# The errors that a worker ends with where it cannot read its bundle.
_ERRORS = frozenset({"BundleCorruptError", "StorageError"})
_LOOK_SECONDS = 1.0


class LostFiles:
    """Which trials wait for which blobs. Kept in memory: the next master tries them at once.

    Parameters
    ----------
    uri : str
        Of the blobs.
    """

    def __init__(self, uri: str) -> None:
        self._blobs = BlobStore(uri)
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
        lost = set(self._blobs.missing(sorted(manifest.hashes())))
        paths = [repr(entry.path) for entry in manifest.files if entry.sha256 in lost]
        others = f" and {len(paths) - 1} others" if len(paths) > 1 else ""
        lost_parts = f"{paths[0]}{others}" if paths else "a value of the notebook"
        return f"{WAITS_FOR_FILES} ({lost_parts}), lost in the master's store: submit the same again" if lost else ""

    def add(self, connection: Connection, trial_id: int, bundle_id: str) -> None:
        """Have a trial wait until the lost blobs of its bundle are there again."""
        self._waits[trial_id] = self._blobs.missing(sorted(bundles.get(connection, bundle_id).hashes()))

    def release(self, waits: Callable[[int], bool]) -> bool:
        """Let those go whose files are there again, or of which `waits` says that they wait no longer.

        Returns whether there are any.
        """
        now = time.monotonic()
        if not self._waits or now - self._looked < _LOOK_SECONDS:
            return False
        self._looked = now
        items = self._waits.items()
        ready = [trial for trial, hashes in items if not self._blobs.missing(hashes) or not waits(trial)]
        for trial in ready:
            del self._waits[trial]
        return bool(ready)
