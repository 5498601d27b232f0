"""Writes what a trial of this process reports while it runs, for the views and processes that look at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from det_native.local.store import LocalStore

if TYPE_CHECKING:
    from det_harness.local.report import LocalReporter


# A row is there for others this long after it was reported.
WRITE_SECONDS = 0.5
# What is written may take this share of a processor from the training beside it.
SHARE = 0.05


class Spool:
    """A thread that writes to the store what a trial reports while it runs.

    Parameters
    ----------
    store : LocalStore
    trial_id : int
    reporter : LocalReporter
    told : callable
        Is called, after rows were written, with the reporter and the batches done.
    """

    def __init__(
        self,
        store: LocalStore,
        trial_id: int,
        reporter: LocalReporter,
        told: Callable[[LocalReporter, int], None],
    ) -> None:
        self._store, self._trial_id, self._reporter, self._told = store, trial_id, reporter, told
        self._written = {"training": len(reporter.training_rows), "validation": len(reporter.validation_rows)}
        self._checkpoints = len(reporter.checkpoints)
        self._epochs = len(reporter.epochs)
        self._logged = len(reporter.logged_rows)
        self._media = len(reporter.logged_media)
        self._samples = reporter.samples
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"det-spool-{store.id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write no more."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        pause = WRITE_SECONDS
        while not self._closed.wait(pause):
            begun = time.monotonic()
            with suppress(OSError):  # a full disk: the end of the trial tells of it
                self._write()
            pause = max(WRITE_SECONDS, (time.monotonic() - begun) / SHARE)

    def _write(self) -> None:
        reporter = self._reporter
        batches = 0
        changed = len(reporter.checkpoints) > self._checkpoints
        for kind, rows in (("training", reporter.training_rows), ("validation", reporter.validation_rows)):
            new = rows[self._written[kind] :]
            if new:
                self._store.append_rows(self._trial_id, kind, new)
                self._written[kind] += len(new)
                changed = True
            batches = max(batches, rows[-1].batch if rows else 0)
        if logged := reporter.logged_rows[self._logged : -1]:  # more may come to the last one
            self._store.append_rows(self._trial_id, "logged", logged)
            self._logged += len(logged)
            changed = True
        if len(reporter.logged_media) > self._media:
            self._media = len(reporter.logged_media)
            self._store.write_media(self._trial_id, reporter.logged_media[: self._media])
        if len(reporter.epochs) > self._epochs:
            self._epochs = len(reporter.epochs)
            self._store.write_epochs(self._trial_id, reporter.epochs[: self._epochs])
        samples = reporter.samples
        if samples is not self._samples:
            self._store.write_samples(self._trial_id, samples)
            self._samples = samples
        if changed:
            self._checkpoints = len(reporter.checkpoints)
            self._told(reporter, batches)
