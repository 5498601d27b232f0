"""What nobody needs any more on an agent's machine, and what killed workers have left in another storage, goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from det_native.errors import DetError, StorageError
from det_native.master.flow.spool import left_batches
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.storage.publication_notes import FOLDER, Note, settle

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 86_400.0


async def keep_clean(folders: AgentFolders) -> None:
    """Clean now and once a day."""
    while True:
        for step in (AgentFolders.remove_deserted, AgentFolders.remove_unused, settle_left):
            try:
                await asyncio.to_thread(step, folders)
            except (DetError, OSError) as error:
                logger.warning("Not all that nobody needs could be removed: %s", error)
        await asyncio.sleep(_EVERY_SECONDS)


def settle_left(folders: AgentFolders) -> None:
    """Remove checkpoints that were on their way to another storage when their worker was killed: nobody knows of them.

    Raises
    ------
    DetError, OSError
        If the storage of one does not answer; that is tried again later.
    """
    for note in sorted(folders.notes_left.glob("*.json")):
        settle(note, lambda _: False, prompt=True)


def settle_run(folders: AgentFolders, run_id: str) -> None:
    """Remove the checkpoint that a run of this machine had under way when it was killed, unless it was reported.

    All that the run has left to report has reached the master before.
    """
    path = folders.runs / FOLDER / f"{run_id}.json"
    try:
        note = Note.model_validate_json(path.read_bytes())
        reported = any(note.uuid in report for report in _reports(Path(note.spool).parent))
    except (OSError, ValueError, StorageError):  # there is none, or what is damaged may be its report
        reported = True
    if reported:
        path.unlink(missing_ok=True)
        return
    folders.put_aside(path)
    try:
        settle_left(folders)
    except (DetError, OSError) as error:
        logger.warning("What run %s has left of a checkpoint is removed later: %s", run_id, error)


def _reports(directory: Path) -> Iterator[str]:
    for batch in left_batches(directory):
        yield from (report.model_dump_json() for report in batch.reports)
