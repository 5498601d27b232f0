"""A thread that looks after the disk: it measures what the home takes, warns, and deletes what may go by rule."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from det_native.errors import DetError
from det_native.master.flow.cleaning import Cleaner
from det_native.master.flow.places import Places
from det_native.master.flow.retention import drop_old_output
from det_native.master.flow.space import measure
from det_native.master.store import settings
from det_native.master.store.database import Database
from det_native.schema.space import CleanWanted, Space, SpaceSettings
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

SETTING = "space"
_FIRST_SECONDS = 120.0
_PERIOD_SECONDS = 300.0
_DAY = 86_400.0
# Caches that were used more recently stay even where the budget is used up.
_OVER_BUDGET_DAYS = 1.0


class SpaceWatch:
    """Looks at the disk of a master every few minutes, if it has a budget; once a day it deletes what is too old.

    Every few minutes it has deletions finished, too, that could not be before.

    Parameters
    ----------
    make_room : callable
        Has superfluous checkpoints deleted.
    owner : str
        Whose settings count.
    clear_runs : callable
        Removes what is kept of old runs without need.
    finish_deletions : callable
        Tries again to remove the files of deleted experiments that could not be removed.
    waiting_deletions : callable
        Counts those.
    """

    def __init__(
        self,
        database: Database,
        places: Places,
        blobs: BlobStore,
        cleaner: Cleaner,
        make_room: Callable[[], None],
        owner: str,
        clear_runs: Callable[[], None] = lambda: None,
        finish_deletions: Callable[[], None] = lambda: None,
        waiting_deletions: Callable[[], int] = lambda: 0,
    ) -> None:
        self._database = database
        self._places = places
        self._blobs = blobs
        self.cleaner = cleaner
        self._make_room = make_room
        self._owner = owner
        self._clear_runs = clear_runs
        self._finish_deletions = finish_deletions
        self._waiting_deletions = waiting_deletions
        self._latest: Space | None = None
        self._latest_at = 0.0
        self._daily_at = 0.0
        self._warned = ""
        self._closed = threading.Event()
        self._measuring = threading.Lock()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="det-space", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; what is being done is finished."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def settings(self) -> SpaceSettings:
        """Return what is kept, and for how long."""
        with self._database.read() as connection:
            found = settings.get(connection, self._owner, SETTING)
        return SpaceSettings.model_validate(found or {})

    def change(self, wanted: SpaceSettings) -> None:
        """Keep what was sent, but for fields that were not; the next look counts with it."""
        with self._database.write() as transaction:
            found = settings.get(transaction.connection, self._owner, SETTING) or {}
            settings.put(transaction, self._owner, SETTING, {**found, **wanted.model_dump(exclude_unset=True)})
        self._latest = None

    def space(self, at_most: float = 0.0) -> Space:
        """Return what takes the disk, as it was at most so many seconds ago; deletions that wait are those of now."""
        with self._measuring:
            latest = self._latest
            if latest is None or time.monotonic() - self._latest_at > at_most:
                latest = self._latest = measure(self._database, self._places, self._blobs, self.settings().budget)
                self._latest_at = time.monotonic()
        return latest.model_copy(update={"waiting_deletions": self._waiting_deletions()})

    @property
    def notices(self) -> list[str]:
        """Sentences for those who submit, by the last look."""
        latest = self._latest
        return [latest.warning] if latest is not None and latest.warning else []

    def look(self) -> None:
        """Measure, warn, and delete by rule what is above the budget; a look that is under way ends first."""
        with self._looking:
            if self.settings().budget is not None:
                self._look()

    def _look(self) -> None:
        space = self.space()
        if space.budget is not None and space.total >= space.budget:
            self.cleaner.clean(CleanWanted(kinds=["blobs", "caches", "uploads"], older_than_days=_OVER_BUDGET_DAYS))
            self._clear_runs()
            self._make_room()
            space = self.space()
        if bool(space.warning) != bool(self._warned):
            if space.warning:
                logger.warning("%s", space.warning)
            else:
                logger.info("the home takes less than its disk budget again: %s", space.line)
        self._warned = space.warning

    def drop_old(self) -> None:
        """Delete what is older than it is to be kept, and blobs that nobody needs."""
        kept = self.settings()
        lines = drop_old_output(self._database, kept.log_retention_days)
        if lines:
            logger.info("%d lines of output deleted, which were to be kept no longer", lines)
        self.cleaner.clean(CleanWanted(kinds=["blobs", "uploads"]))
        if kept.cache_retention_days is not None:
            self.cleaner.clean(CleanWanted(kinds=["caches"], older_than_days=kept.cache_retention_days))

    def _run(self) -> None:
        pause = _FIRST_SECONDS
        while not self._closed.wait(pause):
            pause = _PERIOD_SECONDS
            try:
                self._finish_deletions()
                self.look()
                if time.monotonic() - self._daily_at > _DAY or not self._daily_at:
                    self._daily_at = time.monotonic()
                    self.drop_old()
            except (DetError, OSError, OperationalError) as error:
                logger.error("The disk is not looked after now; it is tried again: %s", error)
            except Exception:
                logger.exception("Looking after the disk failed.")
