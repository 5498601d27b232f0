"""Checkpoints under way from their folder to a report, on record: so that one that no run reports does not stay.

A checkpoint appears by a rename and counts once its report lies in the spool. A worker that is killed in between leaves
files that nobody knows of. While a checkpoint is on that way a note of it lies in ``runs/.publishing/``, locked by its
worker; the note goes under the lock under which the report is written. So a note whose worker is gone tells of a
checkpoint that was either never reported, or is the last thing in its worker's spool: what was sent from there has no
note any more.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
from pathlib import Path
from typing import Any

from det_harness.trial.spool import read_spool
from det_native.errors import DetError, StorageError
from det_native.storage.publication_notes import FOLDER, Note, settle

logger = logging.getLogger("det_harness")


class Publications:
    """Keeps the note of one run, and cleans up after runs that are gone."""

    def __init__(self, directory: Path, run_id: str, checkpoints: str, options: dict[str, Any] | None = None) -> None:
        self._folder = directory.parent / FOLDER
        self._path = self._folder / f"{run_id}.json"
        self._run_id = run_id
        self._checkpoints = checkpoints
        self._options = options or {}
        self._spool = directory / "spool"
        self._descriptor: int | None = None

    def begin(self, uuid: str) -> None:
        """Note that the checkpoint is about to appear; the note is locked before others can see it."""
        note = Note(
            host=platform.node(),
            run_id=self._run_id,
            uuid=uuid,
            checkpoints=self._checkpoints,
            options=self._options,
            spool=str(self._spool),
        )
        self._close()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        hidden = self._folder / f".{self._run_id}.{os.getpid()}"
        self._descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, note.model_dump_json().encode())
        hidden.replace(self._path)

    def end(self) -> None:
        """Remove the note: the checkpoint is reported."""
        self._path.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def clean(self) -> None:
        """Delete the checkpoints of this machine's runs that were killed between publishing and reporting them."""
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".json" and path != self._path]
        except FileNotFoundError:
            return
        for path in paths:
            try:
                settle(path, _may_be_reported)
            except (DetError, OSError) as error:
                logger.warning("What an earlier run left of a checkpoint is not cleaned now: %s", error)


def _may_be_reported(note: Note) -> bool | None:
    """Look into the spool of a run that is gone; without it nothing is certain from here."""
    spool = Path(note.spool)
    if not spool.is_dir():
        return None
    try:
        return any(note.uuid in report for report in read_spool(spool))
    except StorageError:  # what is damaged may be its report
        return None
