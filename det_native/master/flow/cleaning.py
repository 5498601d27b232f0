"""What can go from a master's disk without anybody missing it: on request, by age, and when the budget is used up."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, select

from det_native.master.flow.context import Context
from det_native.master.flow.space import size_of
from det_native.master.flow.take_in import waiting, waiting_hashes
from det_native.master.flow.unneeded_blobs import BlobGuard, new_since, unneeded
from det_native.master.store import runs as run_store
from det_native.master.store.tables import experiments, runs, trials
from det_native.schema.space import Cleanable, CleanDone, CleanedKind, CleanWanted
from det_native.schema.states import ExperimentState
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import BASELINE_NAME

logger = logging.getLogger(__name__)

_DAY = 86_400.0
_TERMINAL = [state for state in ExperimentState if state.terminal]
WHILE_TRIALS_RUN = "trials run that may read them; those of datasets go when none does"


class Cleaner:
    """Deletes what can go. Its methods may be called from any thread; each deletes what is still superfluous then."""

    def __init__(self, context: Context, blobs: BlobStore, guard: BlobGuard) -> None:
        self._context = context
        self._blobs = blobs
        self._guard = guard
        self._of_kind: dict[Cleanable, Callable[[float, bool], CleanedKind]] = {
            "blobs": self._clean_blobs,
            "caches": self._clean_caches,
            "runs": self._clean_runs,
            "uploads": self._clean_uploads,
        }

    def clean(self, wanted: CleanWanted) -> CleanDone:
        """Delete these kinds, or say what would go."""
        before = time.time() - wanted.older_than_days * _DAY
        done = [self._of_kind[kind](before, wanted.dry_run) for kind in dict.fromkeys(wanted.kinds)]
        for kind in done:
            if kind.count and not wanted.dry_run:
                logger.info("cleaned: %d %s, %d bytes", kind.count, kind.kind, kind.bytes)
        return CleanDone(kinds=done, dry_run=wanted.dry_run)

    def _clean_blobs(self, before: float, dry_run: bool) -> CleanedKind:
        since = min(before, new_since())
        with self._context.database.read() as connection:
            doomed = unneeded(connection, self._blobs) - waiting_hashes(self._context)
        doomed = {sha256 for sha256 in doomed if (self._blobs.modified(sha256) or 0.0) < since}
        gone = self._guard.deletable(doomed) if dry_run else self._guard.delete(doomed, since)
        return CleanedKind(kind="blobs", bytes=sum(gone.values()), count=len(gone))

    def _clean_caches(self, before: float, dry_run: bool) -> CleanedKind:
        cache = self._context.places.home / "cache"
        doomed = [path for path in _children(cache / "checkpoints") if _newest(path) < before]
        doomed += [path for path in (cache / "blobs").glob("??/*") if _newest(path) < before]
        datasets = [path for path in _children(cache / "datasets") if _newest(path) < before]
        datasets += [path for path in (cache / "data").glob("contents/??/*") if _newest(path) < before]
        read = bool(datasets) and self._trials_run()
        doomed += [] if read else datasets
        size, count = _remove(doomed, dry_run)
        return CleanedKind(kind="caches", bytes=size, count=count, kept=WHILE_TRIALS_RUN if read else "")

    def _trials_run(self) -> bool:
        """Whether a trial runs, here or in a kernel: none says which cached datasets it reads."""
        with self._context.database.read() as connection:
            return bool(run_store.alive(connection) or waiting(self._context))

    def _clean_runs(self, before: float, dry_run: bool) -> CleanedKind:
        root = self._context.places.home / "runs"
        with self._context.database.read() as connection:
            kept, ended = _runs_of(connection, ended=False), _runs_of(connection, ended=True)
            kept |= {run.run_id for run in run_store.alive(connection)}
        kept |= {folder.name for folder in waiting(self._context)}

        def may_go(folder: Path) -> bool:
            if folder.name in kept or (root / ".publishing" / f"{folder.name}.json").exists():
                return False
            if any(folder.glob(f"{BASELINE_NAME}")) or any(folder.glob(f"*/{BASELINE_NAME}")):
                return False  # the files that it has written are looked for still
            # What the database does not name is of a check, or of a run that begins this moment.
            return _newest(folder) < (before if folder.name in ended else min(before, time.time() - _DAY))

        size, count = _remove([folder for folder in _children(root) if may_go(folder)], dry_run)
        return CleanedKind(kind="runs", bytes=size, count=count)

    def _clean_uploads(self, before: float, dry_run: bool) -> CleanedKind:
        """Remove what broken-off uploads and crashed standbys have left for more than a day."""
        home = self._context.places.home
        horizon = min(before, time.time() - _DAY)
        places = [*_all_children(home / "blobs" / ".incoming"), *_all_children(home / "standby")]
        doomed = [path for path in places if _newest(path) < horizon]
        size, count = _remove(doomed, dry_run)
        if not dry_run:
            count += self._blobs.remove_leftovers()
        return CleanedKind(kind="uploads", bytes=size, count=count)


def _runs_of(connection: Connection, *, ended: bool) -> set[str]:
    """Return the runs of experiments that have ended, or of those that have not."""
    state = experiments.c.state
    query = (
        select(runs.c.run_id)
        .join(trials, trials.c.id == runs.c.trial_id)
        .join(experiments, experiments.c.id == trials.c.experiment_id)
        .where(state.in_(_TERMINAL) if ended else state.not_in(_TERMINAL))
    )
    return set(connection.execute(query).scalars())


def _children(folder: Path) -> list[Path]:
    """Return the folders in a folder but the hidden ones."""
    return [path for path in _all_children(folder) if not path.name.startswith(".") and path.is_dir()]


def _all_children(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder.iterdir())
    return []


def _newest(path: Path) -> float:
    """Return when the newest of a folder's files was written or read, as far as that is noted."""
    newest = 0.0
    for each in _walk(path):
        with suppress(OSError):
            found = os.lstat(each)
            newest = max(newest, found.st_mtime, found.st_atime if each.is_file() else 0.0)
    return newest


def _walk(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            yield from (Path(folder, name) for name in (*folders, *files))


def _remove(paths: list[Path], dry_run: bool) -> tuple[int, int]:
    size = count = 0
    seen: set[tuple[int, int]] = set()
    for path in paths:
        taken, _ = size_of(path, seen)
        if not dry_run:
            try:
                # Renamed first: whoever looks for it sees all of it, or nothing.
                if path.is_dir() and not path.is_symlink():
                    aside = path.with_name(f".{path.name}.removed")
                    path.rename(aside)
                    shutil.rmtree(aside)
                else:
                    path.unlink()
            except OSError as error:
                logger.warning("%s is not removed: %s", path, error)
                continue
        size, count = size + taken, count + 1
    return size, count
