"""Whether a master's folder is still there: it may be deleted, and its file system may go and be mounted anew."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum

from filelock import FileLock

from det_native.errors import MasterStartError
from det_native.master import home as home_folder
from det_native.schema.home import Home
from det_native.storage.room import device_of

logger = logging.getLogger(__name__)


class Presence(Enum):
    """What has become of the folder that a master has locked."""

    PRESENT = "present"
    UNMOUNTED = "unmounted"
    REMOUNTED = "remounted"
    DELETED = "deleted"


class HomeWatch:
    """Looks at the folder, and takes it anew where its file system was mounted anew.

    All that a process has open lies on the file system as it was: its lock, its log, the socket that it listens at.

    Parameters
    ----------
    home : Home
        Locked by this process.
    on_present : callable
        Called at each look that finds the folder as it was.
    on_remount : callable
        Called once the lock of the folder on the new file system is held: opens the rest there.
    """

    def __init__(self, home: Home, on_present: Callable[[], None], on_remount: Callable[[], Awaitable[None]]) -> None:
        self._home = home
        self._on_present = on_present
        self._on_remount = on_remount
        self._held = os.stat(home.master_lock)
        self._lock: FileLock | None = None

    def look(self) -> Presence:
        """Return where the folder is now. What a disk that fails does not say is taken as unchanged."""
        try:
            found = os.stat(self._home.master_lock)
        except FileNotFoundError:
            with suppress(OSError):
                # On another file system than the lock: that of the folder is not mounted.
                return Presence.DELETED if device_of(self._home.path) == self._held.st_dev else Presence.UNMOUNTED
            return Presence.PRESENT
        except OSError:
            return Presence.PRESENT
        if os.path.samestat(found, self._held):
            return Presence.PRESENT
        return Presence.DELETED if found.st_dev == self._held.st_dev else Presence.REMOUNTED

    async def has_home(self) -> bool:
        """Return whether the master goes on: not where its folder was deleted, or is another master's now."""
        presence = await asyncio.to_thread(self.look)  # a disk may take its time
        try:
            if presence is Presence.PRESENT:
                self._on_present()
            if presence is Presence.REMOUNTED:
                await self._take_anew()
        except MasterStartError as error:
            logger.warning("the file system of the master's folder was mounted anew: %s", error)
            return False
        except OSError as error:  # the next look tries again
            logger.warning("the master's folder cannot be used at the moment: %s", error)
        return presence is not Presence.DELETED

    async def _take_anew(self) -> None:
        lock = home_folder.lock(self._home)
        try:
            await self._on_remount()
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        self._held = os.stat(self._home.master_lock)
        logger.warning("the file system of the master's folder was mounted anew: the master goes on there")
