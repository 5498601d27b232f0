"""When superfluous checkpoints are deleted: as new ones come, when room is short, and when an experiment has ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from det_native.master.flow import collection
from det_native.master.flow.context import Context
from det_native.master.store import experiments, unfinished
from det_native.schema.query.moments import stored
from det_native.schema.retention import LAST_WHILE_RUNNING
from det_native.storage import backups

logger = logging.getLogger(__name__)

# So long after its last piece a checkpoint may be on its way to somebody still: between two files of it, say.
_READ_SECONDS = 60.0


class Collector:
    """Deletes in a thread of its own, one after the other. Its methods may be called from any thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="det-collect")
        self._lock = threading.Lock()
        self._closed = False
        self._due: set[object] = set()
        self._read_until: dict[str, float] = {}

    def submit(self, step: Callable[..., object], *arguments: Any) -> None:
        """Have something else deleted, behind what is due already."""
        with self._lock:
            if not self._closed:
                self._pool.submit(_logged, step, *arguments)

    def again(self, step: Callable[[], None]) -> None:
        """Have something tried again, once however often that is asked for before it begins."""
        self._once(step, step)

    def ended(self, experiment_id: int) -> None:
        """An experiment has ended."""
        self.submit(collection.collect, self._context, experiment_id)

    def published(self, experiment_id: int, trial_id: int | None = None) -> None:
        """There are new checkpoints of an experiment, of this trial if it is told."""
        self._once((experiment_id, trial_id), partial(self._collect, experiment_id, trial_id))

    def make_room(self) -> None:
        """Room is short: delete all that is superfluous, of every trial all but the last checkpoint."""
        self._once("room", self._make_room)

    def reads(self, uuid: str) -> None:
        """Somebody is downloading a checkpoint: it stays for a while."""
        with self._lock:
            now = time.monotonic()
            self._read_until = {one: until for one, until in self._read_until.items() if until > now}
            self._read_until[uuid] = now + _READ_SECONDS

    def close(self) -> None:
        """End; what has not begun is left to the next master."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _once(self, key: object, step: Callable[[], None]) -> None:
        with self._lock:
            if key in self._due:
                return
            self._due.add(key)
        self.submit(self._run, key, step)

    def _run(self, key: object, step: Callable[[], None]) -> None:
        with self._lock:
            self._due.discard(key)  # what comes from now on may be missed by this time
        step()

    def _collect(self, experiment_id: int, trial_id: int | None = None, last: int = LAST_WHILE_RUNNING) -> None:
        collection.collect_running(
            self._context,
            experiment_id,
            trial_id,
            is_read=self._is_read,
            backed_up=self._backed_up(),
            last=last,
        )

    def _make_room(self) -> None:
        with self._context.database.read() as connection:
            ended, going_on = experiments.uncollected(connection), unfinished.ids(connection)
        for experiment_id in ended:
            collection.collect(self._context, experiment_id)
        for experiment_id in going_on:
            self._collect(experiment_id, last=1)

    def _is_read(self, uuid: str) -> bool:
        with self._lock:
            return self._read_until.get(uuid, 0.0) > time.monotonic()

    def _backed_up(self) -> str | None:
        """Return when the newest backup of the database was made, as times of checkpoints are written."""
        file = self._context.database.file
        found = backups.listing(file) if file is not None else []
        return stored(found[0].time) if found else None


def _logged(step: Callable[..., object], *arguments: Any) -> None:
    try:
        step(*arguments)
    except Exception:
        logger.exception("Something superfluous is not deleted.")
