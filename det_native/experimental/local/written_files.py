"""Files that the code of a local trial writes, listed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from det_native.errors import DetError
from det_native.local.artifacts import WrittenHere, keep_written
from det_native.local.store import LocalStore

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


def _batches(reporter: LocalReporter) -> int:
    rows = (*reporter.training_rows[-1:], *reporter.validation_rows[-1:])
    return max((row.batch for row in rows), default=0)
