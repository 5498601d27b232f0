"""Trials whose bundle has lost files in the master's store: they go on once somebody has sent those anew.

A store that is far away may be silent. The decision thread waits for it a second at most; whoever looks again and again
does that in another thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late

from sqlalchemy import Connection

from det_native.errors import StorageError
from det_native.master.store import bundles
from det_native.schema.reports import ExitReport
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

WAITS_FOR_FILES = "waits for files of its bundle"
WAITS_FOR_STORAGE = "waits for the storage of its bundle, which does not say whether all files are there"
# The errors that a worker ends with where it cannot read its bundle.
_ERRORS = frozenset({"BundleCorruptError", "StorageError"})
_LOOK_SECONDS = 1.0
_PATIENCE = 1.0
_UNREACHABLE_SECONDS = 30.0


class LostFiles:
    """Which trials wait for which blobs. Kept in memory: the next master tries them at once."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._waits: dict[int, list[str]] = {}
        # What the last looks have said, by bundle; and the trials that have waited for an answer once.
        self._lost_of: dict[str, list[str]] = {}
        self._answered: set[int] = set()
        self._looked = 0.0
        self._silent_until = 0.0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="det-lost-files")
        self._looking: dict[int, tuple[list[str], Future[list[str]]]] = {}

    @property
    def trials(self) -> set[int]:
        """The trials that wait."""
        return set(self._waits)

    def close(self) -> None:
        """Look no more."""
        self._pool.shutdown(wait=self._blobs.local, cancel_futures=True)

    def sentence(self, connection: Connection, trial_id: int, bundle_id: str | None, exit: ExitReport | None) -> str:
        """Return which files a run has ended for since the store has lost them, "" if it has not.

        Where the storage does not say, a trial waits until it does; that is done once for each trial, so that one that
        ends for another reason ends.
        """
        if bundle_id is None or exit is None or exit.error is None or exit.error.type not in _ERRORS:
            return ""
        manifest = bundles.get(connection, bundle_id)
        lost = self._answer(manifest.hashes())
        if lost is None:
            return "" if self._blobs.local or trial_id in self._answered else WAITS_FOR_STORAGE
        if not lost:
            return ""
        self._lost_of[bundle_id] = lost
        paths = [repr(entry.path) for entry in manifest.files if entry.sha256 in lost]
        others = f" and {len(paths) - 1} others" if len(paths) > 1 else ""
        lost_parts = f"{paths[0]}{others}" if paths else "a value of the notebook"
        return f"{WAITS_FOR_FILES} ({lost_parts}), lost in the master's store: submit the same again"

    def add(self, connection: Connection, trial_id: int, bundle_id: str) -> None:
        """Have a trial wait until the lost blobs of its bundle are there again."""
        lost = self._lost_of.pop(bundle_id, None)
        if lost is None:
            self._answered.add(trial_id)
        self._waits[trial_id] = sorted(bundles.get(connection, bundle_id).hashes()) if lost is None else lost

    def release(self, waits: Callable[[int], bool]) -> bool:
        """Let those go whose files are there again, or of which `waits` says that they wait no longer.

        Returns whether there are any.
        """
        now = time.monotonic()
        if not self._waits or now - self._looked < _LOOK_SECONDS:
            return False
        self._looked = now
        ready = [trial for trial in self._waits if not waits(trial) or self._is_there(trial)]
        for trial in ready:
            del self._waits[trial]
        return bool(ready)

    def _is_there(self, trial: int) -> bool:
        """Return what a look at the files of a trial has said that has ended; begin the next one."""
        hashes = self._waits[trial]
        begun, look = self._looking.pop(trial, (hashes, None))
        if look is not None and not look.done():
            self._looking[trial] = begun, look
            return False
        if look is not None and begun == hashes and self._said(look) == []:
            return True
        if time.monotonic() >= self._silent_until:
            self._looking[trial] = hashes, self._pool.submit(self._blobs.lost, hashes)
        return False

    def _answer(self, hashes: Iterable[str]) -> list[str] | None:
        """Return which are lost; None where the storage does not say soon, which is then left alone for a while."""
        if time.monotonic() < self._silent_until:
            return None
        look = self._pool.submit(self._blobs.lost, sorted(hashes))
        return self._said(look, None if self._blobs.local else _PATIENCE)

    def _said(self, look: Future[list[str]], patience: float | None = None) -> list[str] | None:
        try:
            return look.result(patience)
        except Late:
            look.cancel()
            logger.warning("Whether the storage of bundles has lost files is not known now: it does not answer.")
        except (OSError, StorageError) as error:
            logger.warning("Whether the storage of bundles has lost files is not known now: %s", error)
        self._silent_until = time.monotonic() + _UNREACHABLE_SECONDS
        return None
