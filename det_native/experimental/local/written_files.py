"""Files that the code of a local trial writes: listed, and brought here from processes of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from det_native.errors import DetError
from det_native.local.artifacts import WrittenHere, keep_written
from det_native.local.store import LocalStore
from det_native.schema.job import TrialJob

if TYPE_CHECKING:
    from det_harness.local.report import LocalReporter

logger = logging.getLogger(__name__)

_FAULTS = (DetError, OSError, ValueError)


@contextmanager
def files_listed(store: LocalStore, trial_id: int, reporter: LocalReporter) -> Iterator[None]:
    """Keep a list of what the trial that runs in the block, in this process, writes in its working directory.

    Whatever else changes there meanwhile is in the list, too.
    """
    from det_harness.local.written_files import WorkingDirectory

    place = WorkingDirectory.now()
    try:
        yield
    finally:
        try:
            files = place.written(trial_id, _batches(reporter))
            if files:
                keep_written(
                    store.trial_folder(trial_id), [WrittenHere.at(file, place.root / file.path) for file in files]
                )
        except _FAULTS as error:  # the training is over, and its files are where they are
            logger.warning("The files that trial %d has written are not listed: %s", trial_id, error)


def bringing_files(store: LocalStore, job: TrialJob, size: int, reporter: LocalReporter) -> Callable[[], None]:
    """Return what brings the files of a trial's processes to this working directory, where plain code would put them.

    Parameters
    ----------
    store : LocalStore
    job : TrialJob
        Of the processes.
    size : int
        How many there are.
    reporter : LocalReporter
        Knows what they have reported.
    """
    from det_harness.local.written_files import WorkingDirectory, take_files

    place = WorkingDirectory.now()

    def bring() -> None:
        try:
            files = take_files(job, size, place, reporter, _batches(reporter), store.id)
            keep_written(store.trial_folder(job.trial_id), [WrittenHere.at(file, at) for file, at in files])
        except _FAULTS as error:  # what the training has come to is not lost for that
            logger.warning("Files that trial %d has written cannot be brought here: %s", job.trial_id, error)

    return bring


def _batches(reporter: LocalReporter) -> int:
    rows = (*reporter.training_rows[-1:], *reporter.validation_rows[-1:])
    return max((row.batch for row in rows), default=0)
