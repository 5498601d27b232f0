"""A thread that backs the database up every hour."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from det_native.errors import StorageError
from det_native.storage import backups

logger = logging.getLogger(__name__)

_PERIOD_SECONDS = 3600.0
# A master that is started again and again must not do it each time, nor never.
_FIRST_SECONDS = 120.0


class HourlyBackups:
    """Backs a database up in a thread of its own: soon after the start if the last backup is old, then every hour.

    Parameters
    ----------
    database : Path
        The SQLite file.
    first, period : float
        Seconds from the start to the first backup, and between two of them.
    """

    def __init__(self, database: Path, *, first: float = _FIRST_SECONDS, period: float = _PERIOD_SECONDS) -> None:
        self._database = database
        self._first = first
        self._period = period
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="det-backup", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; a backup that is being made is finished."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = max(self._first, self._period - self._age())
        while not self._closed.wait(pause):
            pause = self._period
            begun = time.monotonic()
            try:
                backup = backups.make(self._database)
            except StorageError as error:
                logger.error("%s", error)
            else:
                logger.info("database backed up in %.1f s: %s", time.monotonic() - begun, backup.path)

    def _age(self) -> float:
        """Return how many seconds old the newest backup is; one from the future, by a clock set back, is too old."""
        made = backups.listing(self._database)
        age = (datetime.now(UTC) - made[0].time).total_seconds() if made else self._period
        return age if age >= 0 else self._period
