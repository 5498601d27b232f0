"""A master that cannot store anything: its folder can no longer be written, or the server of its database is away.

That is noticed, told, and over by itself.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from det_native.errors import MasterError
from det_native.master.store.database import Database
from det_native.storage.remote_folder import is_remote
from det_native.storage.room import FAILED_CODES

_LOOK_SECONDS = 1.0
# While trials run and nobody asks for anything, too, it is seen within so long.
_PULSE_SECONDS = 5.0


class Outage:
    """Whether the master can store anything at all.

    Parameters
    ----------
    home : Path
        Its folder.
    database : Database
        Knows of its own failures; what is seen elsewhere is noted there.
    on_change : callable
        Called by :meth:`look` when an outage has begun, or is over.
    """

    def __init__(self, home: Path, database: Database, on_change: Callable[[], None]) -> None:
        self._home = home
        self._database = database
        self._on_change = on_change
        self._known = False
        self._looked = self._pulsed = float("-inf")

    @property
    def lasts(self) -> bool:
        """Whether nothing can be stored at the moment."""
        return self._database.fault is not None

    @property
    def notice(self) -> str:
        """What keeps experiments from going on, with since when; empty while all is well."""
        fault = self._database.fault
        if fault is None:
            return ""
        place = f"reach its database {fault.server}" if fault.server else f"write to {self._home}"
        return f"the master cannot {place} since {fault.since} ({fault.what})"

    @property
    def sentence(self) -> str:
        """The same for somebody who has asked for something, with what to do."""
        fault, notice = self._database.fault, self.notice
        if fault is None or not notice:
            return ""
        remedy = "Start the database's server" if fault.server else "Mend or mount the file system"
        return (
            f"{notice[0].upper()}{notice[1:]}: nothing new is stored. {remedy}; the master goes on by itself as soon "
            "as it can write."
        )

    def note(self, error: BaseException) -> bool:
        """Note an error, if it says that the folder's file system is read-only or has died; whether it does."""
        if not isinstance(error, OSError) or error.errno not in FAILED_CODES or is_remote(error):
            return False
        # A path elsewhere, such as a user's storage, says nothing of the master's own folder.
        if error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(self._home):
            return False
        self._database.note_fault(os.strerror(error.errno))
        return True

    def look(self) -> None:
        """See whether an outage has begun or is over, every second at most."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        fault = self._fault_of_home() or self._fault_of_writing(now)
        if fault:
            self._database.note_fault(fault)
        elif self.lasts:
            self._try()
        if self.lasts != self._known:
            self._known = self.lasts
            self._on_change()

    def _fault_of_home(self) -> str:
        try:
            read_only = os.statvfs(self._home).f_flag & os.ST_RDONLY
        except FileNotFoundError as error:  # it is not mounted: a master whose folder was deleted stops
            return os.strerror(error.errno or 0)
        except OSError as error:
            return os.strerror(error.errno or 0) if error.errno in FAILED_CODES else ""
        return os.strerror(errno.EROFS) if read_only else ""

    def _fault_of_writing(self, now: float) -> str:
        """Write a file without a name: one that fails may be mounted as before."""
        if now - self._pulsed < _PULSE_SECONDS and not self.lasts:
            return ""
        self._pulsed = now
        try:
            descriptor = os.open(self._home, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, b"\0")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:  # also where file systems know no such files, or have no room
            return os.strerror(error.errno or 0) if error.errno in FAILED_CODES else ""
        return ""

    def _try(self) -> None:
        with suppress(DBAPIError, MasterError, OSError):  # the database has noted it
            self._database.try_to_write()
