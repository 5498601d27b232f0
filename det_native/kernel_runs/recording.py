"""What is known of the record of a run: which master has it, under which numbers, or why none has.

The thread that sends the run's reports finds the master, or starts it, and records the run; whoever asks a handle
something does the same, or waits for it. Nothing of it raises into the training.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from det_native.client.addresses import THIS_MACHINE
from det_native.errors import DetError, MasterError, MasterUnreachableError
from det_native.kernel_runs.folder import RunFolder
from det_native.schema.kernel_runs import KernelRun, KernelRunRecorded

if TYPE_CHECKING:
    from det_native.client.session import Session
    from det_native.storage.blobs import BlobStore

#: So long the thread waits for the first batch before it loads what speaks to a master.
FIRST_BATCH_SECONDS = 2.0
# After a master that did not start, or did not answer, so long nobody is asked again, unless somebody waits for it.
_FIRST_PAUSE_SECONDS = 2.5
_LONGEST_PAUSE_SECONDS = 300.0
_REVIVE_SECONDS = 30.0
# Whoever waits has it tried, but not for each of the questions of one cell.
_AGAIN_SECONDS = 5.0
# Reports with contents: what they name has to be there before them.
_WITH_CONTENTS = ('"type":"media"', '"type":"artifacts"')


class NotRecordedError(MasterUnreachableError):
    """No master has the run yet; the message says why, and where its reports lie."""


class Recording:
    """The record of one run.

    Parameters
    ----------
    request : KernelRun
        What the master is told; the contents of its program lie in the folder's blobs.
    named : str or None
        The master that the user has named, in place of that of this machine.
    """

    def __init__(self, folder: RunFolder, request: KernelRun, named: str | None = None) -> None:
        self.folder = folder
        self.begun = threading.Event()
        self._request = request
        self._named = named
        self._process = os.getpid()
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
        if not self._elsewhere:
            self._leave()

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
        return (
            f"This run is not recorded yet: {self._why.rstrip('.')}. Its reports are in {self.folder.path}: the next "
            "master that starts takes them in."
        )

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

            return connect(self._named, start=False)
        assert self._user is not None
        return self._user

    def session_of_run(self) -> Session:
        """Return the session for the run's reports, for the thread that sends them.

        Raises
        ------
        MasterError
            If no master has the run: it is tried again later.
        """
        self.begun.wait(FIRST_BATCH_SECONDS)
        self._record(at_once=False)
        if self._run is None:
            raise MasterError(self.why_not)
        return self._run

    def bring_contents(self, reports: list[str]) -> None:
        """Send a master that does not share the folder's blobs what reports name."""
        named = [report for report in reports if any(text in report for text in _WITH_CONTENTS)]
        if named and self._user is not None:
            self._bring(self._user, {sha256 for report in named for sha256 in _hashes_in(json.loads(report))})

    def revive(self) -> None:
        """Start the master of this machine again if it was killed; one that was stopped stays so."""
        if self._user is None or self._elsewhere or time.monotonic() < self._revived + _REVIVE_SECONDS:
            return
        from det_native.client.connect import revive

        self._revived = time.monotonic()
        with suppress(DetError, OSError):
            revive(self._user)

    def end(self) -> None:
        """The training has ended: what no master has by now, the next one of this machine is to find."""
        self.begun.set()
        if self._elsewhere and self._numbers is None:
            self._leave()
            self._named, self._again = THIS_MACHINE, -math.inf  # so that questions to its handle have an answer

    @property
    def _elsewhere(self) -> bool:
        return self._named not in (None, THIS_MACHINE)

    def _leave(self) -> None:
        with suppress(OSError):  # a full disk: the master is told by the thread
            self.folder.leave(self._request)

    def _record(self, *, at_once: bool) -> None:
        """Find or start the master and tell it of the run, unless that has failed a moment ago."""
        if self._numbers is not None or os.getpid() != self._process:
            return
        asked = time.monotonic()
        with self._lock:
            # Another thread may have tried since this one asked, or the question before this one.
            if self._numbers is not None or asked < self._failed + (self._again if at_once else self._pause):
                return
            try:
                self._numbers = self._recorded()
            except Exception as error:  # noqa: BLE001 (whatever it is, the training goes on without a record)
                self._why = str(error) or type(error).__name__
                self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
                self._failed = time.monotonic()
                return
            then, self._then = self._then, []
        for do in then:
            do()

    def _bring(self, session: Session, hashes: set[str]) -> None:
        """Send a master contents that it lacks, unless it shares the folder's blobs."""
        from det_native.client.upload import own_folder, send_contents

        if own_folder(session) != self.folder.root / "blobs":
            from det_native.storage.blobs import BlobStore

            store = BlobStore(self.folder.blobs)
            send_contents(session, _StoredContents(store, hashes - set(store.missing(hashes))))

    def _recorded(self) -> KernelRunRecorded:
        from det_native.client.connect import connect
        from det_native.schema import routes

        named = self._named
        session = connect(named)
        if self._request.bundle is not None:
            self._bring(session, self._request.bundle.hashes())
        numbers = session.call(routes.RECORD_KERNEL_RUN, self._request)
        self._user, self._run = session, session.of_run(self.folder.token)
        if named is not None:
            self.folder.withdraw()
        return numbers


class _StoredContents(Mapping[str, bytes]):
    """Contents by their hashes, read from a store of this machine when they are sent."""

    def __init__(self, store: BlobStore, hashes: set[str]) -> None:
        self._store = store
        self._hashes = hashes

    def __getitem__(self, sha256: str) -> bytes:
        return self._store.read(sha256)

    def __iter__(self) -> Iterator[str]:
        return iter(self._hashes)

    def __len__(self) -> int:
        return len(self._hashes)


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
