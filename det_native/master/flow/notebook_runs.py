"""Runs of notebooks on the master's machine, for schedules, and the executed notebooks that experiments keep."""

from __future__ import annotations

import hashlib
import json
import platform
from contextlib import suppress
from pathlib import Path

from det_native.errors import NotFoundError, RequestError
from det_native.master.flow.context import tell_experiment
from det_native.master.flow.unneeded_blobs import BlobGuard
from det_native.master.store import experiments
from det_native.master.store.database import Database
from det_native.schema import rest
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun, RunRequest
from det_native.storage.blobs import BlobStore


class NotebookRuns:
    """The notebook runs of a master's home."""

    def __init__(self, home: Path) -> None:
        self._home = Home(home)

    def check(self, request: RunRequest) -> None:
        """Raise what beginning a run would raise; nothing runs."""
        from det_native.notebook_runs.start import check_request  # Jupyter's packages: slow to load

        check_request(request)

    def begin(self, request: RunRequest) -> NotebookRun:
        """Begin a run; a request whose key has begun one gives that one."""
        from det_native.notebook_runs.start import start_run

        return start_run(request, self._home)

    def find(self, number: int | None) -> NotebookRun | None:
        """Return a run; None if it is not there any more."""
        from det_native.notebook_runs.folders import find_run

        with suppress(NotFoundError):
            return find_run(self._home, number or 0).run()
        return None

    def listing(self) -> list[NotebookRun]:
        """Return the runs, newest first."""
        from det_native.notebook_runs.folders import list_runs

        return [run.model_copy(update={"machine": platform.node()}) for run in list_runs(self._home)]

    def stop(self, number: int) -> NotebookRun:
        """Stop a run, and the experiments that it waits for."""
        from det_native.notebook_runs.start import stop_run

        return stop_run(self._home, number)

    def executed(self, number: int) -> bytes:
        """Return the executed notebook of a run, as far as it has come."""
        from det_native.notebook_runs.folders import find_run

        return find_run(self._home, number).content()


class KeptNotebooks:
    """The executed notebooks that experiments keep.

    Parameters
    ----------
    guard : BlobGuard
        Keeps a blob from being cleaned away before its experiment names it.
    """

    def __init__(self, database: Database, blobs: BlobStore, guard: BlobGuard) -> None:
        self._database, self._blobs, self._guard = database, blobs, guard

    def keep(self, owner: str, experiment_id: int, content: bytes) -> rest.Experiment:
        """Keep the executed notebook of an experiment, in place of one that it has.

        Raises
        ------
        NotFoundError
            If there is no such experiment.
        RequestError
            If the content is not a notebook.
        """
        with self._database.read() as connection:
            experiments.get(connection, experiment_id, owner)
        if not _is_notebook(content):
            raise RequestError(400, "The content is not a notebook of format 4 (.ipynb).")
        sha256 = hashlib.sha256(content).hexdigest()
        self._guard.keep([sha256])
        self._blobs.put(sha256, content)
        with self._database.write() as transaction:
            experiments.get(transaction.connection, experiment_id, owner)
            experiments.keep_notebook(transaction, experiment_id, sha256)
            return tell_experiment(transaction, experiment_id)  # pages that show it offer the notebook then

    def get(self, owner: str, experiment_id: int) -> bytes:
        """Return the executed notebook of an experiment.

        Raises
        ------
        NotFoundError
            If none was kept.
        """
        with self._database.read() as connection:
            experiments.get(connection, experiment_id, owner)
            sha256 = experiments.get_notebook(connection, experiment_id)
        if sha256 is None or sha256 not in self._blobs:
            raise NotFoundError(
                f"Experiment {experiment_id} has no executed notebook: an open kernel or a script began it."
            )
        return self._blobs.read(sha256)


def _is_notebook(content: bytes) -> bool:
    try:
        document = json.loads(content)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("cells"), list) and document.get("nbformat") == 4
