"""What is known of the record of a run: its process, which master has it, under which numbers, or why none has.

The thread that sends the run's reports finds the master, or starts it, and records the run; whoever asks a handle
something does the same, or waits for it. Nothing of it raises into the training.
"""

from __future__ import annotations

import contextvars
import json
import math
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from det_native.client.addresses import THIS_MACHINE
from det_native.errors import DetError, FencedError, MasterError, NotRecordedError
from det_native.kernel_runs.folder import RunFolder
from det_native.schema.kernel_runs import KernelProcess, KernelRun, KernelRunRecorded
from det_native.schema.processes import pid_namespace, start_mark

if TYPE_CHECKING:
    from det_native.client.session import Session

# After a master that did not start, or did not answer, so long nobody is asked again, unless somebody waits for it.
_FIRST_PAUSE_SECONDS = 2.5
_LONGEST_PAUSE_SECONDS = 300.0
_REVIVE_SECONDS = 30.0
# Whoever waits has it tried, but not for each of the questions of one cell.
_AGAIN_SECONDS = 5.0
# Reports with contents: what they name has to be there before them.
_WITH_CONTENTS = ("media", "artifacts")


class Recording:
    """The record of one run.

    Parameters
    ----------
    request : KernelRun
        What the master is told; the contents of its program lie in the folder's blobs.
    named : str or None
        The master that the user has named, in place of that of this machine.
    never : str
        Why no master is to have the run; empty where one is.
    """

    def __init__(self, folder: RunFolder, request: KernelRun, named: str | None = None, never: str = "") -> None:
        self.folder = folder
        self.begun = threading.Event()
        self.request = request
        self._named = named
        self._given_up = False  # on the named one, which has not answered
        self._never = never
        self._process = os.getpid()
        self._context = contextvars.copy_context()  # in which the thread prints under the cell that trains
        self._lock = threading.Lock()
        self._numbers: KernelRunRecorded | None = None
        self._user: Session | None = None
        self._run: Session | None = None
        self._why = "no master was asked yet."
        self._pause = _FIRST_PAUSE_SECONDS
        self._again = _AGAIN_SECONDS
        self._failed = -math.inf
        self._revived = -math.inf
        self._then: list[Callable[[], None]] = []
        if not self.elsewhere:
            self._leave()

    @property
    def elsewhere(self) -> bool:
        """Whether another machine's master is to have the run."""
        return self._master not in (None, THIS_MACHINE)

    @property
    def _master(self) -> str | None:
        """Which master is to have the run, as it is named; None where nobody has named any."""
        return THIS_MACHINE if self._given_up else self._named

    @property
    def numbers(self) -> KernelRunRecorded | None:
        """The numbers of experiment and trial; None as long as no master has the run."""
        return self._numbers

    @property
    def failed(self) -> bool:
        """Whether a master was looked for, and none has the run."""
        return self._numbers is None and self._failed > 0

    @property
    def why_not(self) -> str:
        """Why no master has the run, and where its reports lie."""
        return self._never or (
            f"This run is not recorded yet: {self._why.rstrip('.')}. Its reports are in {self.folder.path}: the next "
            "master that starts takes them in."
        )

    @property
    def reason(self) -> str:
        """What the last master that was asked has said, or why none was."""
        return self._why

    def when_recorded(self, do: Callable[[], None]) -> None:
        """Have something done once a master has the run, by the thread that records it; at once if one has."""
        with self._lock:
            if self._numbers is None:
                self._then.append(do)
                return
        do()

    def wait(self) -> KernelRunRecorded:
        """Return the numbers, once a master has the run; it is looked for now.

        Raises
        ------
        NotRecordedError
            If there is none; the message says why.
        """
        self._record(at_once=True)
        if self._numbers is None:
            raise NotRecordedError(self.why_not)
        return self._numbers

    def session(self) -> Session:
        """Return the user's session with the master that has the run; see :meth:`wait`."""
        self.wait()
        if os.getpid() != self._process:  # connections are not shared with a fork
            from det_native.client.connect import connect

            return connect(self._master, start=False)
        assert self._user is not None
        return self._user

    def session_of_run(self) -> Session:
        """Return the session for the run's reports, for the thread that sends them.

        Raises
        ------
        FencedError
            If none is ever to have it.
        MasterError
            If no master has the run: it is tried again later.
        """
        self._record(at_once=False)
        if self._run is None:
            raise (FencedError if self._never else MasterError)(self.why_not)
        return self._run

    def bring_contents(self, reports: list[str]) -> None:
        """Send a master that does not share the folder's blobs what reports name."""
        if self._user is None or self._shares_blobs(self._user):
            return
        named = [report for report in map(json.loads, reports) if report["type"] in _WITH_CONTENTS]
        if named:
            self._bring(self._user, set(_hashes_in(named)))

    def revive(self) -> None:
        """Start the master of this machine again if it was killed; one that was stopped stays so."""
        if self._user is None or self.elsewhere or time.monotonic() < self._revived + _REVIVE_SECONDS:
            return
        from det_native.client.connect import revive

        self._revived = time.monotonic()
        with suppress(DetError, OSError):
            revive(self._user)

    def forget(self) -> None:
        """Have no master get the run: it has ended before its first batch. Does nothing if one has it."""
        with self._lock:
            if self._numbers is None:
                self._never = "This run is not recorded: it has ended before its first batch."
                self.folder.discard()
        self.begun.set()

    def end(self) -> None:
        """The training has ended: what no master has by now, the next one of this machine is to find."""
        self.begun.set()
        if self.elsewhere and self._numbers is None:
            self._given_up, self._again = True, -math.inf  # so that questions to its handle have an answer
            self._leave()

    def _leave(self) -> None:
        if not self._never:
            with suppress(OSError):  # a full disk: the master is told by the thread
                self.folder.leave(self.request)

    def _record(self, *, at_once: bool) -> None:
        """Find or start the master and tell it of the run, unless that has failed a moment ago."""
        if self._numbers is not None or self._never or os.getpid() != self._process:
            return
        asked = time.monotonic()
        with self._lock:
            # Another thread may have tried since this one asked, or the question before this one.
            if (
                self._numbers is not None
                or self._never
                or asked < self._failed + (self._again if at_once else self._pause)
            ):
                return
            try:
                self._numbers = self._recorded() if at_once else self._context.run(self._recorded)
            except Exception as error:  # noqa: BLE001 (whatever it is, the training goes on without a record)
                self._why = str(error) or type(error).__name__
                self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
                self._failed = time.monotonic()
                return
            then, self._then = self._then, []
        for do in then:
            do()

    def _shares_blobs(self, session: Session) -> bool:
        from det_native.client.upload import own_folder

        return str(own_folder(session)) == self.folder.blobs

    def _bring(self, session: Session, hashes: set[str]) -> None:
        """Send a master contents that it lacks."""
        from det_native.client.upload import send_contents
        from det_native.schema import routes
        from det_native.schema.rest import HashList
        from det_native.storage.blobs import BlobStore

        store = BlobStore(self.folder.blobs)
        lacking = session.call(routes.FIND_MISSING, HashList(hashes=sorted(hashes - set(store.missing(hashes)))))
        send_contents(session, {sha256: store.read(sha256) for sha256 in lacking.hashes})

    def _recorded(self) -> KernelRunRecorded:
        from det_native.client.connect import connect
        from det_native.schema import routes

        session = connect(self._master)
        if self.request.bundle is not None and not self._shares_blobs(session):
            self._bring(session, self.request.bundle.hashes())
        numbers = session.call(routes.RECORD_KERNEL_RUN, self.request)
        self._user, self._run = session, session.of_run(self.folder.token)
        if self._master is not None:
            self.folder.withdraw()
        return numbers


def _hashes_in(value: object) -> Iterator[str]:
    """Yield the hashes of contents that a report names."""
    if isinstance(value, dict):
        found = value.get("sha256")
        if isinstance(found, str):
            yield found
        for each in value.values():
            yield from _hashes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _hashes_in(each)


_CONNECTION_FILE = re.compile(r"kernel-(?P<id>[0-9A-Za-z_-]+)\.json")


def this_process() -> KernelProcess:
    """Return the process that asks."""
    pid = os.getpid()
    connection_file = _connection_file()
    found = _CONNECTION_FILE.fullmatch(Path(connection_file).name)
    return KernelProcess(
        pid=pid,
        start=start_mark(pid) or "",
        namespace=pid_namespace(),
        machine=socket.gethostname(),
        in_kernel=bool(connection_file),
        kernel_id=found["id"] if found else None,
        interruptible=threading.current_thread() is threading.main_thread(),
    )


def _connection_file() -> str:
    """Return by what a front end reaches this kernel; empty in a process that is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    application = getattr(shell, "parent", None) if shell is not None else None
    application = getattr(application, "parent", None)
    return str(getattr(application, "connection_file", "") or "")
