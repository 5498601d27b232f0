"""What a trial does while there is no room for a checkpoint: it waits, says so, and goes on once there is some."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from det_harness.trial import activity
from det_native.errors import DiskFullError
from det_native.storage.room import BLIND_SECONDS, WAITS_FOR_ROOM, RoomWatch, storage_error

logger = logging.getLogger("det_harness")

POLL_SECONDS = 0.25
# Somebody who pauses a training may do so to make room.
SECONDS_AFTER_STOP = 5.0


def has_spare_disk(uri: str) -> bool:
    """Return whether temporary files lie on another disk than the checkpoints at `uri`.

    A checkpoint is then written there while its own disk is full, so that the training can go on meanwhile.
    """
    try:
        return os.stat(uri).st_dev != os.stat(tempfile.gettempdir()).st_dev
    except OSError:  # not a folder of this machine: its checkpoints are written to temporary files anyway
        return False


def spare_folder() -> Path:
    """Return a fresh folder for temporary files.

    Raises
    ------
    DiskFullError
        If there is no room for them, either.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="det-checkpoint-"))
    except OSError as error:
        raise storage_error(f"No temporary folder can be made: {error}.", error) from error


def watched(uri: str, folder: Path | None) -> str:
    """Return where to look for room: at the checkpoints, or at the folder where they are not of this machine."""
    return uri if folder is None or os.path.isdir(uri) else str(folder)


class DiskWait:
    """The wait for room of one checkpoint.

    Parameters
    ----------
    place : str
        Where the checkpoint is to be, for messages.
    tell : callable
        Is told what is waited for, and an empty text once it is over.
    stop : callable
        Whether the training is to end: then there is little time left.
    """

    def __init__(self, place: str, batch: int, tell: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self._place = place
        self._batch = batch
        self._tell = tell
        self._stop = stop
        self._said = False
        # Short at first: there may be room again by the time that is looked for it.
        self._blind_seconds = 1.0

    def wait(self, error: DiskFullError, path: str) -> None:
        """Return once another attempt at writing to `path` is worth it.

        Raises
        ------
        DiskFullError
            `error`, if the training is to end and there is no room for some seconds more.
        """
        watch, give_up_at = RoomWatch(path, self._blind_seconds), None
        self._blind_seconds = min(2 * self._blind_seconds, BLIND_SECONDS)
        if not self._said:
            self._said = True
            logger.warning(
                "There is no room for the checkpoint of batch %d in %s. It is written as soon as there is; the "
                "training waits for that at its next checkpoint.",
                self._batch,
                self._place,
            )
            self._tell(f"{WAITS_FOR_ROOM} in {self._place} (checkpoint of batch {self._batch})")
        while not watch.has_more():
            if give_up_at is None and self._stop():
                give_up_at = time.monotonic() + SECONDS_AFTER_STOP
            if give_up_at is not None and time.monotonic() >= give_up_at:
                raise error
            activity.step()  # it waits, and does not hang
            time.sleep(POLL_SECONDS)

    def over(self) -> None:
        """The checkpoint is written, or given up."""
        if self._said:
            self._said = False
            self._tell("")

    def succeeded(self) -> None:
        """The checkpoint is written."""
        if self._said:
            logger.warning("There is room again: the checkpoint of batch %d is written.", self._batch)
        self.over()
