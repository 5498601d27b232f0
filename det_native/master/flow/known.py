"""What is known of bundles by their id alone, so that to submit an unchanged directory again reads none."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy import Connection

from det_native.errors import NotFoundError
from det_native.master.flow.jobs import worker_kind
from det_native.master.flow.stores import absent
from det_native.master.flow.unneeded_blobs import BlobGuard
from det_native.master.launch.base import WorkerKind
from det_native.master.store import bundles
from det_native.storage.blobs import BlobStore

_KEPT = 256


@dataclass(frozen=True)
class _Known:
    """A bundle that was complete while the store was at `generation`."""

    kind: WorkerKind
    generation: object
    hashes: tuple[str, ...]


class KnownBundles:
    """Remembers of the latest bundles who can run them, and that their blobs were all there. Threads may share it."""

    def __init__(self, blobs: BlobStore, guard: BlobGuard) -> None:
        self._blobs = blobs
        self._guard = guard
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def forget(self, bundle_id: str) -> None:
        """Look for a bundle anew when it is asked for the next time: it was deleted."""
        with self._lock:
            self._known.pop(bundle_id, None)

    def kind_of(self, connection: Connection, bundle_id: str) -> WorkerKind:
        """Return what a worker for a bundle needs.

        The blobs are looked for when the bundle is asked for the first time, and again once folders of the store have
        come or gone: one look at a folder stands for one at each file. Those that somebody has written to meanwhile
        are read, and removed if they are damaged.

        Raises
        ------
        NotFoundError
            If there is no such bundle, or one of its blobs has been lost: it is to be sent again.
        """
        with self._lock:
            known = self._known.get(bundle_id)
        if known is not None:
            self._guard.keep(known.hashes)
            self._blobs.remove_changed(known.hashes)
        generation = self._blobs.generation()
        with self._lock:
            if known is not None and known.generation == generation:
                if bundle_id in self._known:
                    self._known.move_to_end(bundle_id)
                return known.kind
        manifest = bundles.get(connection, bundle_id)
        hashes = tuple(sorted(manifest.hashes()))
        self._guard.keep(hashes)
        self._blobs.remove_changed(hashes)
        generation = self._blobs.generation()
        lost = self._blobs.lost(hashes) if known is not None else absent(self._blobs, hashes)
        if lost:
            raise NotFoundError(f"{len(lost)} blobs of bundle {bundle_id} are gone; send it again.")
        kind = worker_kind(manifest)
        with self._lock:
            self._known[bundle_id] = _Known(kind, generation, hashes)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return kind
