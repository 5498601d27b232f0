"""What the user's code writes in its working directory, reported while it trains and at the end.

A thread looks at it every few seconds; its looks and what it stores take a small part of the time, however many files
there are. What goes wrong with it is logged, and the training goes on.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from det_harness.trial.open_files import OpenFiles, flush_writers
from det_native.schema.outputs import MOST_OF_REPORT, WrittenFile
from det_native.schema.ranks import rank_folder
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import BASELINE_NAME, Baseline, Folder, walk
from det_native.storage.written_files import FileCollection, limits_of

logger = logging.getLogger("det_native")

INTERVAL = 5.0
# A look that took a second is followed by so many seconds without one.
_PAUSE_FACTOR = 30.0

Report = Callable[[list[WrittenFile], list[str]], None]


class WrittenFiles:
    """The files that the code of one run writes.

    Parameters
    ----------
    directory : Path
        The folder of this process; ``work`` in it is its working directory.
    rank, ranks : int
        Which process this is, and of how many. The first one reports the files of all.
    blobs : callable
        Returns where contents go; called when training begins.
    report : callable
        Is told the files that are new or have changed, and paths that are not there any more.
    """

    def __init__(
        self,
        directory: Path,
        *,
        rank: int,
        ranks: int,
        blobs: Callable[[], BlobStore],
        report: Report,
        batches: Callable[[], int],
    ) -> None:
        self._directory = directory
        self._rank, self._ranks = rank, ranks
        self._report = report
        self._batches = batches
        self._blobs = blobs
        self._baseline = Baseline()
        self._collection: FileCollection | None = None
        #: The names of the user's program.
        self.namespace: Mapping[str, Any] = {}
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._looking = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Training begins: what is there now is not reported unless it changes."""
        limits = limits_of(os.environ)
        elsewhere = self._baseline.elsewhere
        self._baseline = Baseline(dict(walk(self._directory / "work", links=True)), limits, elsewhere)
        self._collection = FileCollection(self._blobs(), self._folders, limits)
        self._leave_baseline()
        if self._rank == 0:
            self._thread = threading.Thread(target=self._look_often, name="det-files", daemon=True)
            self._thread.start()

    def add_folder(self, path: str, root: Path) -> None:
        """Report what is in a folder elsewhere, too, as if it lay at `path` in the working directory."""
        self._baseline.elsewhere[f"{path.strip('/')}/"] = str(root)
        if self._collection is not None:
            self._leave_baseline()

    def _leave_baseline(self) -> None:
        try:
            self._baseline.write(self._directory)
        except OSError as error:
            logger.warning("If this run is killed, files that it has written are not kept: %s", error)

    def look_soon(self) -> None:
        """Have the thread look now: a checkpoint was taken, say."""
        self._wake.set()

    def end(self) -> None:
        """Take the last look: the user's code has ended. Nothing of it raises."""
        if self._collection is None:
            return
        self._ended.set()
        self._wake.set()
        try:
            work = self._directory / "work"
            flush_writers(self.namespace.values())
            OpenFiles().flush({(state[0], state[1]) for _, state in walk(work)})
            if self._rank == 0:
                with self._looking:
                    self._look(last=True)
            if self._ranks == 1:  # what other processes write after this, the master looks for
                (self._directory / BASELINE_NAME).unlink(missing_ok=True)
        except Exception:
            logger.exception("The last files that the training has written cannot be reported now.")

    def _look_often(self) -> None:
        pause = INTERVAL
        while not self._ended.is_set():
            woken = self._wake.wait(pause)
            self._wake.clear()
            begun = time.monotonic()
            try:
                with self._looking:
                    if self._ended.is_set():
                        return
                    self._look()
            except Exception:
                logger.exception("Files that the training has written cannot be reported now.")
            took = time.monotonic() - begun
            pause = max(INTERVAL, _PAUSE_FACTOR * took)
            if woken:  # checkpoints that come in quick succession are not a look each
                self._ended.wait(min(pause, _PAUSE_FACTOR * took + 1.0))

    def _look(self, *, last: bool = False) -> None:
        assert self._collection is not None
        changes = self._collection.look(self._batches(), last=last)
        files, removed = changes.files, changes.removed
        while files or removed:
            self._report(files[:MOST_OF_REPORT], removed[:MOST_OF_REPORT])
            files, removed = files[MOST_OF_REPORT:], removed[MOST_OF_REPORT:]

    def _folders(self) -> list[Folder]:
        folders = self._baseline.folders(self._directory)
        for rank in range(1, self._ranks):
            folder = rank_folder(self._directory, rank)
            baseline = Baseline.read(folder)
            if baseline is not None:
                folders += baseline.folders(folder)
        return folders
