"""Experiments are deleted: the row is hidden first, then files go, then the rows. What was begun is brought to its end.

Blobs are looked for, and removed, under a lock that is held, too, when a bundle or an experiment is stored: so nobody
is told that a blob is there which is about to go.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from det_native.errors import DetError, RequestError
from det_native.master.flow.context import Context, tell_experiment
from det_native.master.flow.places_of_checkpoints import storage_of
from det_native.master.flow.take_in import waiting_hashes
from det_native.master.store import experiments, life, unfinished
from det_native.schema import rest
from det_native.schema.life import Deletion
from det_native.storage.blobs import BlobStore

logger = logging.getLogger(__name__)

# What a worker has stored, it reports within this time.
_REPORTED_SECONDS = 600.0
_SHOWN = 5


class _UnreachableError(Exception):
    """Checkpoints cannot be removed."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"its checkpoints at {uri} cannot be reached now ({reason}), and are removed once they can be")


class Deletions:
    """Deletes experiments. Threads may share it.

    Parameters
    ----------
    forget_bundle : callable
        Is told the id of a bundle that is gone.
    """

    def __init__(self, context: Context, blobs: BlobStore, forget_bundle: Callable[[str], None]) -> None:
        self._context = context
        self._blobs = blobs
        self._forget_bundle = forget_bundle
        self._logged: dict[int, str] = {}
        #: Held while blobs are removed, and while somebody relies on their being there until a row says so.
        self.storing = threading.RLock()

    def preview(self, experiment_id: int, owner: str) -> Deletion:
        """Return what the deletion would free, and what stands in its way.

        Raises
        ------
        NotFoundError
            If there is no such experiment of this owner.
        """
        with self._context.database.read() as connection:
            experiment = experiments.get(connection, experiment_id, owner)
            hashes, _ = life.only_blobs(connection, experiment_id)
            return self._described(connection, experiment, hashes, obstacles(connection, experiment))

    def begin(self, experiment_id: int, owner: str) -> Deletion:
        """Have an experiment exist no more; return what goes with it. :meth:`finish` removes that.

        Raises
        ------
        NotFoundError
            If there is no such experiment of this owner, or it is deleted already.
        RequestError
            If something stands in the way.
        """
        freed = self.preview(experiment_id, owner)
        with self._context.database.write() as transaction:
            experiment = experiments.get(transaction.connection, experiment_id, owner)
            refused = obstacles(transaction.connection, experiment)
            if refused:
                raise RequestError(409, refused[0])
            life.set_deleted(transaction, experiment_id)
            tell_experiment(transaction, experiment_id)
            deleted = experiments.deleted_at(transaction.connection, experiment_id, owner)
        logger.info("experiment %d is deleted: %d bytes", experiment_id, freed.bytes)
        return freed.model_copy(update={"deleted": deleted})

    def finish(self, experiment_id: int) -> str:
        """Remove files and rows of an experiment that exists no more; return why that cannot be done now, or nothing.

        :meth:`finish_all` tries it again.
        """
        return self._tried(experiment_id, set())

    def finish_all(self) -> None:
        """Bring to their ends what was begun, and could not be finished then."""
        with self._context.database.read() as connection:
            begun = life.half_deleted(connection)
        unreachable: set[str] = set()
        for experiment_id in begun:
            self._tried(experiment_id, unreachable)

    def waiting(self) -> int:
        """Return how many deleted experiments have files still."""
        with self._context.database.read() as connection:
            return len(life.half_deleted(connection))

    def _tried(self, experiment_id: int, unreachable: set[str]) -> str:
        try:
            self._finish(experiment_id, unreachable)
        except _UnreachableError as error:
            pending = str(error)
        except (DetError, OSError, OperationalError) as error:
            pending = f"its files cannot be removed now ({_reason(error)}), and are once they can be"
        else:
            self._logged.pop(experiment_id, None)
            return ""
        if self._logged.get(experiment_id) != pending:  # not every few minutes anew
            logger.error("Experiment %d is deleted; %s.", experiment_id, pending)
            self._logged[experiment_id] = pending
        return pending

    def _finish(self, experiment_id: int, unreachable: set[str]) -> None:
        places = self._context.places
        with self._context.database.read() as connection:
            if experiment_id not in life.half_deleted(connection):
                return
            experiment = experiments.get(connection, experiment_id)
            found = life.checkpoints_of(connection, experiment_id)
            runs = life.runs_of(connection, experiment_id)
        storage = storage_of(self._context, experiment)
        if storage.uri in unreachable:  # to wait for it again takes long, and nothing else is deleted meanwhile
            raise _UnreachableError(storage.uri, "nothing there answers")
        for uuid, _, _ in found:
            try:
                storage.delete(uuid)
            except (DetError, OSError) as error:
                unreachable.add(storage.uri)
                raise _UnreachableError(storage.uri, _reason(error)) from error
        for folder in [*(places.run(run_id) for run_id in runs), _event_files(places.home, experiment_id)]:
            if folder.exists():
                shutil.rmtree(folder)
        for run_id in runs:
            (places.run("x").parent / ".publishing" / f"{run_id}.json").unlink(missing_ok=True)
        with self.storing:
            with self._context.database.read() as connection:
                hashes, bundle_id = life.only_blobs(connection, experiment_id)
                others_run = bool(unfinished.count(connection))
            since = _seconds(experiment.ended) if others_run else None
            for sha256 in sorted(hashes - waiting_hashes(self._context)):
                if not self._is_anew(sha256, since):
                    self._blobs.delete(sha256)
            self._blobs.tell_loss()
            with self._context.database.write() as transaction:
                life.remove_rows(transaction, experiment_id, bundle_id)
            if bundle_id is not None:
                self._forget_bundle(bundle_id)

    def _is_anew(self, sha256: str, since: float | None) -> bool:
        """Return whether a worker has stored a blob again that it may be about to report."""
        written = self._blobs.modified(sha256)
        return since is not None and written is not None and written > max(since, time.time() - _REPORTED_SECONDS)

    def _described(
        self, connection: Connection, experiment: rest.Experiment, hashes: Iterable[str], refused: list[str]
    ) -> Deletion:
        found = [size for _, size, exists in life.checkpoints_of(connection, experiment.id) if exists]
        sizes = [size for size in map(self._blobs.size, hashes) if size is not None]
        places = self._context.places
        return Deletion(
            experiment_id=experiment.id,
            name=experiment.name,
            checkpoints=len(found),
            checkpoint_bytes=sum(found),
            blobs=len(sizes),
            blob_bytes=sum(sizes),
            event_file_bytes=_bytes_in(_event_files(places.home, experiment.id)),
            output_bytes=sum(_bytes_in(places.run(run_id)) for run_id in life.runs_of(connection, experiment.id)),
            obstacles=refused,
            **life.counts(connection, experiment.id),
        )


def obstacles(connection: Connection, experiment: rest.Experiment) -> list[str]:
    """Return why an experiment cannot be deleted, a sentence each; empty if it can."""
    number, found = experiment.id, []
    if not experiment.state.terminal:
        found.append(
            f"Experiment {number} goes on and cannot be deleted: det.experiment({number}).kill() or `det experiment "
            f"kill {number}` ends it."
        )
    versions = [f"version {version} of the model {name!r}" for name, version, _ in life.registered(connection, number)]
    if versions:
        found.append(
            f"Experiment {number} cannot be deleted: a checkpoint of it is {_listed(versions)}. Delete the version "
            "first."
        )
    pinned = life.pinned(connection, number)
    if pinned:
        found.append(f"Experiment {number} cannot be deleted: checkpoint {_listed(pinned)} is pinned. Unpin it first.")
    users = sorted({*life.users(connection, number), *_configured_users(connection, number)})
    if users:
        which = _listed([str(user) for user in users])
        found.append(
            f"Experiment {number} cannot be deleted: a checkpoint of it is what experiment {which} began with. Delete "
            "that first."
        )
    return found


def _configured_users(connection: Connection, experiment_id: int) -> set[int]:
    """Return the experiments that go on whose configuration names a checkpoint or trial of this one."""
    uuids = {uuid for uuid, _, _ in life.checkpoints_of(connection, experiment_id)}
    mine, found = life.trial_ids(connection, experiment_id), set()
    for other, (_, text) in unfinished.configs(connection).items():
        searcher = json.loads(text).get("searcher") or {}
        if other != experiment_id and (
            searcher.get("source_checkpoint_uuid") in uuids or searcher.get("source_trial_id") in mine
        ):
            found.add(other)
    return found


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _event_files(home: Path, experiment_id: int) -> Path:
    return home / "tensorboard" / str(experiment_id)


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(root) / name).lstat().st_size
    return total


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
