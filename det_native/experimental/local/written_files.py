"""Files that the code of a local trial writes: listed, and brought here from processes of their own."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from det_native.errors import DetError
from det_native.home.placing import place_files
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
    from det_harness.local.written_files import take_files

    folder, begun = Path.cwd(), time.time()

    def bring() -> None:
        try:
            files, write_content = take_files(job, size, reporter, _batches(reporter))
            kept = [file for file in files if file.sha256 is not None]
            title = f"experiment {store.id}"
            placed = place_files(write_content, kept, folder, submitted=begun, title=title, room=math.inf)
            for path, beside in placed.beside.items():
                logger.warning(
                    "%s has changed since the training began and stays; what the training wrote is %s.",
                    *(path.relative_to(folder), beside.name),
                )
            for name, reason in placed.stayed.items():
                logger.warning("%s, which the training has written, cannot be put here: %s", name, reason)
            places = ((file, folder / file.path) for file in files)
            written = [WrittenHere.at(file, placed.beside.get(place, place)) for file, place in places]
            keep_written(store.trial_folder(job.trial_id), written)
        except _FAULTS as error:  # what the training has come to is not lost for that
            logger.warning("Files that trial %d has written cannot be brought here: %s", job.trial_id, error)

    return bring


def _batches(reporter: LocalReporter) -> int:
    rows = (*reporter.training_rows[-1:], *reporter.validation_rows[-1:])
    return max((row.batch for row in rows), default=0)
