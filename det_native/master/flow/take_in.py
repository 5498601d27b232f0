"""Runs of kernels that no master was there to record: they are taken in from their folders once they are over."""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from det_native.errors import DetError, StorageError
from det_native.master.flow import kernels
from det_native.master.flow.context import Context
from det_native.master.flow.kernel_runs import record
from det_native.master.flow.stores import absent
from det_native.master.store import bundles, checkpoints, experiments, runs
from det_native.schema.exit_report import EXIT_NAME
from det_native.schema.kernel_runs import REQUEST_NAME, KernelRun, KernelRunRecorded
from det_native.schema.processes import is_alive, is_near
from det_native.schema.routes import PATTERNS
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

#: In the folder of a run.
EVENTS_NAME = "tensorboard"
BROKEN_NAME = "kernel.broken.json"
_HASH = re.compile(r"\b[0-9a-f]{64}\b")


def roots(home: Path) -> Iterator[Path]:
    """Yield where kernels make the folders of their runs: the home, and what stood in for one that took nothing."""
    yield home
    spare = Path(tempfile.gettempdir()) / f"det-native-{os.getuid()}"
    with suppress(OSError):
        found = spare.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            yield spare


def waiting(context: Context) -> list[Path]:
    """Return the folders of runs that the database does not know: they go on, or wait to be taken in."""
    found = [path.parent for root in roots(context.places.home) for path in root.glob(f"runs/*/{REQUEST_NAME}")]
    with context.database.read() as connection:
        return [folder for folder in sorted(found) if runs.get(connection, folder.name) is None]


def waiting_hashes(context: Context) -> set[str]:
    """Return the blobs that such runs name: those of their programs, and of what they have logged and written."""
    found: set[str] = set()
    for folder in waiting(context):
        found |= _hashes_in(folder)
    return found


def show_events(context: Context, run_id: str, recorded: KernelRunRecorded) -> None:
    """Have the event files that a training writes in its folder shown with those of all others."""
    folder, events = context.folder_of(run_id), _events(context, recorded)
    if folder.is_dir() and not os.path.lexists(events):
        events.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        events.symlink_to(folder / EVENTS_NAME)


def bring_home(context: Context, run_id: str, recorded: KernelRunRecorded) -> None:
    """Move the folder of a run that is over to those of all others, and its event files likewise."""
    folder, target, events = context.folder_of(run_id), context.places.run(run_id), _events(context, recorded)
    if (folder / EVENTS_NAME).is_dir():
        events.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if events.is_dir() and not events.is_symlink():  # of an earlier run
            shutil.copytree(folder / EVENTS_NAME, events, dirs_exist_ok=True)
            shutil.rmtree(folder / EVENTS_NAME)
        else:
            events.unlink(missing_ok=True)
            shutil.move(folder / EVENTS_NAME, events)
    if folder != target and folder.parents[1] in roots(context.places.home) and folder.is_dir():
        target.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.move(folder, target)
        context.kernels.move(run_id, target)
        _bring_checkpoints(context, folder.parents[1] / "checkpoints", recorded.experiment_id)


def _bring_checkpoints(context: Context, place: Path, experiment_id: int) -> None:
    """Move the checkpoints of a run whose home could not be written, which lie where the system clears away."""
    with context.database.read() as connection:
        if experiments.kept_at(connection, experiment_id) != str(place):
            return
        known = checkpoints.of_experiment(connection, experiment_id)
    target = Path(context.places.checkpoints)
    target.mkdir(mode=0o700, exist_ok=True)
    folders = [folder for each in known if (folder := place / each.uuid).is_dir()]
    for folder in folders:
        shutil.copytree(folder, target / folder.name, dirs_exist_ok=True)
    with context.database.write() as transaction:
        experiments.set_kept_at(transaction, experiment_id, str(target))
        checkpoints.move(transaction, experiment_id, str(target))
    for folder in folders:
        shutil.rmtree(folder)


def _events(context: Context, recorded: KernelRunRecorded) -> Path:
    return context.places.home / "tensorboard" / str(recorded.experiment_id) / str(recorded.trial_id)


class TakeIn:
    """Records the runs that have ended without a master. Used by the collector's thread only.

    Parameters
    ----------
    owner : str
        Whose they are.
    recorded : callable
        Is told the id of a run that is recorded, and when it was last heard of.
    """

    def __init__(self, context: Context, owner: str, recorded: Callable[[str, float], None]) -> None:
        self._context = context
        self._owner = owner
        self._recorded = recorded

    def look(self) -> None:
        """Take in all whose processes are gone; one that lives has itself recorded."""
        for folder in waiting(self._context):
            try:
                self._look_at(folder)
            except (DetError, ValidationError, UnicodeError) as error:
                logger.error("The run in %s cannot be taken in, and is left as it is: %s", folder, _first_line(error))
                (folder / REQUEST_NAME).rename(folder / BROKEN_NAME)
            except OSError as error:  # it is tried again
                logger.warning("The run in %s is not taken in now: %s", folder, error)

    def _look_at(self, folder: Path) -> None:
        if not re.fullmatch(PATTERNS["run_id"], folder.name):
            raise StorageError(f"{folder.name} is not an id of a run.")
        asked = KernelRun.model_validate_json((folder / REQUEST_NAME).read_bytes())
        heard = _last_written(folder)
        if not _is_over(asked, folder, heard):
            return
        asked = asked.model_copy(update={"run_id": folder.name, "directory": str(folder)})
        record(self._context, self._owner, self._with_program(asked, folder))
        logger.info("run %s is taken in from %s", asked.run_id, folder)
        self._recorded(asked.run_id, heard)

    def _with_program(self, asked: KernelRun, folder: Path) -> KernelRun:
        """Have the master keep the program of a run, if all of it is there."""
        self._bring_blobs(folder)
        bundle = asked.bundle
        if bundle is None:
            return asked.model_copy(update={"bundle_id": None})
        missing = absent(self._context.blobs, sorted(bundle.hashes()))
        if missing:
            why = f"{len(missing)} of its files were gone when a master took the run in."
            return asked.model_copy(update={"bundle_id": None, "no_program": why})
        with self._context.database.write() as transaction:
            bundles.add(transaction, bundle)
        return asked.model_copy(update={"bundle_id": bundle.id})

    def _bring_blobs(self, folder: Path) -> None:
        """Copy what a run outside of the home has in blobs of its own."""
        own = folder.parents[1] / "blobs"
        if own == self._context.places.own_blobs or not own.is_dir():
            return
        store = BlobStore(str(own))
        for sha256 in self._context.blobs.missing(sorted(_hashes_in(folder))):
            with suppress(StorageError):  # a hash of something else
                self._context.blobs.put(sha256, store.read(sha256))


def _is_over(asked: KernelRun, folder: Path, heard: float) -> bool:
    """Return whether nothing more comes of a run by itself."""
    process, silent = asked.process, time.time() - heard
    if (folder / EXIT_NAME).is_file() and silent > kernels.UNSENT_SECONDS:
        return True
    if is_near(process.start, process.namespace):
        return not is_alive(process.pid, process.start)
    return silent > kernels.SILENT_SECONDS


def _last_written(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (*folder.glob("*.*"), *folder.glob("spool/*")) if path.exists())


def _hashes_in(folder: Path) -> set[str]:
    texts = [path.read_text(errors="replace") for path in (folder / REQUEST_NAME, *folder.glob("spool/*.jsonl"))]
    return {sha256 for text in texts for sha256 in _HASH.findall(text)}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
