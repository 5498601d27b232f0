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
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from det_harness.trial.spool import read_spool
from det_native.errors import DetError, StorageError
from det_native.storage.checkpoints import CheckpointStorage

logger = logging.getLogger("det_harness")

_FOLDER = ".publishing"
_FORGOTTEN_SECONDS = 7 * 86_400.0


class _Note(BaseModel):
    """Which checkpoint is on its way, and where its report would be."""

    model_config = ConfigDict(extra="forbid")

    host: str
    run_id: str
    uuid: str
    checkpoints: str
    options: dict[str, Any] = Field(default_factory=dict)
    spool: str


class Publications:
    """Keeps the note of one run, and cleans up after runs that are gone.

    Parameters
    ----------
    directory : Path
        The run's own folder, ``runs/<run_id>``.
    run_id : str
    checkpoints : str
        Address of the checkpoints.
    options : dict, optional
        What their storage takes beside the address.
    """

    def __init__(self, directory: Path, run_id: str, checkpoints: str, options: dict[str, Any] | None = None) -> None:
        self._folder = directory.parent / _FOLDER
        self._path = self._folder / f"{run_id}.json"
        self._run_id = run_id
        self._checkpoints = checkpoints
        self._options = options or {}
        self._spool = directory / "spool"
        self._descriptor: int | None = None

    def begin(self, uuid: str) -> None:
        """Note that the checkpoint is about to appear; the note is locked before others can see it."""
        note = _Note(
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
                _settle(path)
            except (DetError, OSError) as error:
                logger.warning("What an earlier run left of a checkpoint is not cleaned now: %s", error)


def _settle(path: Path) -> None:
    """Look at one note: of a live worker it is left alone, of a dead one it is done with."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.fstat(descriptor).st_nlink and _is_done(os.pread(descriptor, 1 << 16, 0), os.fstat(descriptor).st_mtime):
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_done(text: bytes, written: float) -> bool:
    """Delete the checkpoint of a note if it is certain that nobody has reported it; return whether the note may go."""
    try:
        note = _Note.model_validate_json(text)
    except ValidationError:
        return True
    spool = Path(note.spool)
    if note.host != platform.node() or not spool.is_dir():
        return time.time() - written > _FORGOTTEN_SECONDS  # nothing is certain from here
    try:
        if any(note.uuid in report for report in read_spool(spool)):
            return True
    except StorageError:  # what is damaged may be its report
        return time.time() - written > _FORGOTTEN_SECONDS
    storage = CheckpointStorage(note.checkpoints, note.options)
    found = storage.latest_complete([note.uuid])
    if found is not None and found.run_id == note.run_id:
        storage.delete(note.uuid)
        logger.info("Removed checkpoint %s: run %s ended before it could report it.", note.uuid, note.run_id)
    elif found is None:
        storage.discard(note.uuid)
    return True
