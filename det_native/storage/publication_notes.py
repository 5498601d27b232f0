"""Notes of checkpoints under way from their folder to a report: so what a killed worker leaves of them is known.

``det_harness.trial.publications`` writes them, each locked by its worker for as long as that lives.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from det_native.storage.checkpoints import CheckpointStorage

logger = logging.getLogger("det_native")

#: The folder of notes, beside those of runs.
FOLDER = ".publishing"
_FORGOTTEN_SECONDS = 7 * 86_400.0


class Note(BaseModel):
    """Which checkpoint is on its way, and where its report would be."""

    model_config = ConfigDict(extra="forbid")

    host: str
    run_id: str
    uuid: str
    checkpoints: str
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    spool: str


#: Whether a report of the checkpoint of a note may exist; None if nothing is certain.
MayBeReported = Callable[[Note], bool | None]


def settle(path: Path, may_be_reported: MayBeReported, *, prompt: bool = False) -> None:
    """Look at one note: of a live worker it is left alone, of a dead one it is done with.

    Its checkpoint is deleted if it is certain that nobody has reported it. With `prompt` a storage that is silent is
    given up soon.

    Raises
    ------
    DetError, OSError
        If that cannot be done now; the note stays.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        state = os.fstat(descriptor)
        if state.st_nlink and _is_done(os.pread(descriptor, 1 << 16, 0), state.st_mtime, may_be_reported, prompt):
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_done(text: bytes, written: float, may_be_reported: MayBeReported, prompt: bool) -> bool:
    try:
        note = Note.model_validate_json(text)
    except ValidationError:
        return True
    reported = None if note.host != platform.node() else may_be_reported(note)
    if reported is None:
        return time.time() - written > _FORGOTTEN_SECONDS
    if not reported:
        storage = CheckpointStorage(note.checkpoints, note.options, prompt=prompt)
        found = storage.latest_complete([note.uuid])
        if found is not None and found.run_id == note.run_id:
            storage.delete(note.uuid)
            logger.info("Removed checkpoint %s: run %s ended before it could report it.", note.uuid, note.run_id)
        elif found is None:
            storage.discard(note.uuid)
    return True
