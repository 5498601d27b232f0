"""What the code of a run had written that ended before its worker could report it: killed, or out of memory.

The worker leaves in the folder of each of its processes what was there when training began, and removes that once it
has reported its files for the last time.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from det_native.master.flow.context import Context
from det_native.master.store import artifacts
from det_native.master.store import runs as run_store
from det_native.schema.outputs import MOST_OF_REPORT
from det_native.schema.ranks import rank_folder
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import BASELINE_NAME
from det_native.storage.written_files import look_at_left

logger = logging.getLogger(__name__)

# So long those wait who ask for the files of a trial.
WAIT_SECONDS = 20.0


class LeftFiles:
    """Looks for the files of runs that have ended, in the thread that `submit` has steps run in.

    Parameters
    ----------
    submit : callable
        Has a step run after those that were submitted before.
    """

    def __init__(self, context: Context, blobs: BlobStore, submit: Callable[[Callable[[], object]], None]) -> None:
        self._context = context
        self._blobs = blobs
        self._submit = submit
        self._changed = threading.Condition()
        self._pending: Counter[int] = Counter()

    def expect(self, run_id: str, trial_id: int, ranks: int) -> bool:
        """A run has ended: return whether to call :meth:`look_at` for it; who asks for its files waits until then."""
        if not _unfinished(self._context.folder_of(run_id), ranks):
            return False
        with self._changed:
            self._pending[trial_id] += 1
        return True

    def look_at(self, run_id: str, trial_id: int, ranks: int) -> None:
        """Have the files of a run that is expected found, behind what is to be done before."""
        self._submit(partial(self._expected, run_id, trial_id, ranks))

    def look_at_all(self) -> None:
        """Have the files found of all runs that ended while no master was there, or before one had come to that."""
        self._submit(self._all)

    def wait(self, trial_id: int) -> None:
        """Return once the files are known of the runs of this trial that have ended; after a while in any case."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending[trial_id], WAIT_SECONDS)

    def _expected(self, run_id: str, trial_id: int, ranks: int) -> None:
        try:
            self._look(run_id, trial_id, ranks)
        finally:
            with self._changed:
                self._pending[trial_id] -= 1
                self._changed.notify_all()

    def _all(self) -> None:
        root = self._context.places.run("x").parent
        with self._context.database.read() as connection:
            alive = {run.run_id for run in run_store.alive(connection)}
            runs = [
                run
                for run_id in sorted({path.parent.name for path in root.glob(f"*/{BASELINE_NAME}")} - alive)
                if (run := run_store.get(connection, run_id)) is not None
            ]
        for run in runs:
            try:
                self._look(run.run_id, run.trial_id, len(run.log_offsets))
            except Exception:  # those of the others are found all the same
                logger.exception("Files that run %s has left are not found now.", run.run_id)

    def _look(self, run_id: str, trial_id: int, ranks: int) -> None:
        folders = _unfinished(self._context.folder_of(run_id), ranks)
        if not folders:
            return
        with self._context.database.read() as connection:
            run = run_store.get(connection, run_id)
            assert run is not None
            reported = artifacts.of_run(connection, trial_id, run.number)
        changes = look_at_left(folders, self._blobs, reported, max(run.start_batch, run.training_last))
        files, removed = changes.files, changes.removed
        while files or removed:
            with self._context.database.write() as transaction:
                artifacts.add(transaction, trial_id, run.number, files[:MOST_OF_REPORT], removed[:MOST_OF_REPORT])
            files, removed = files[MOST_OF_REPORT:], removed[MOST_OF_REPORT:]
        for folder in folders:
            (folder / BASELINE_NAME).unlink(missing_ok=True)


def _unfinished(folder: Path, ranks: int) -> list[Path]:
    """Return the folders of the processes of a run if any of them has not removed its note."""
    folders = [rank_folder(folder, rank) for rank in range(ranks)]
    return folders if any((each / BASELINE_NAME).is_file() for each in folders) else []
