"""Room that is kept on the master's disk, so that what somebody asks for can be done when it is full."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from det_native.storage.room import free_bytes

logger = logging.getLogger(__name__)

SIZE = 4 << 20
# It is taken again once there is so much more than it needs.
_PLENTY = 4 * SIZE
_TRY_SECONDS = 1.0


class Reserve:
    """A file that is nothing but room: while the disk is full it is given up, for decisions and for nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tried = float("-inf")
        self.held = False
        self.hold()

    def hold(self) -> None:
        """Take the room, if there is plenty; asked again at once, this does nothing."""
        now = time.monotonic()
        if self.held or now - self._tried < _TRY_SECONDS:
            return
        self._tried = now
        if (free_bytes(self._path.parent) or 0) < _PLENTY:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, SIZE)
            finally:
                os.close(descriptor)
        except OSError as error:
            logger.warning("No room can be kept at %s: %s", self._path, error)
            self._path.unlink(missing_ok=True)
            return
        self.held = True

    def give_up(self) -> bool:
        """Let the room be used; False if that is so already."""
        if not self.held:
            return False
        self.held = False
        self._path.unlink(missing_ok=True)
        logger.warning("The disk of %s is full: reports of metrics wait until there is room again.", self._path.parent)
        return True
