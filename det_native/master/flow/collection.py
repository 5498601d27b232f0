"""What is superfluous is deleted: while an experiment goes on, and once it or a run has ended."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from det_native.errors import DetError
from det_native.master.flow.context import Context
from det_native.master.flow.places_of_checkpoints import storage_of
from det_native.master.flow.take_in import waiting
from det_native.master.store import bundles, checkpoints, experiments, protection, runs, trials
from det_native.master.store.database import Transaction, is_disk_full
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import BundleManifest
from det_native.schema.ranks import rank_folder
from det_native.schema.retention import LAST_WHILE_RUNNING, superfluous, superfluous_already
from det_native.schema.run_ids import ALPHABET
from det_native.schema.states import CheckpointState
from det_native.storage.paths import safe_join

logger = logging.getLogger(__name__)

#: Ended runs whose output and reports stay on disk.
KEPT_RUNS = 100


def retire(transaction: Transaction, experiment: rest.Experiment) -> None:
    """Have the superfluous checkpoints of an experiment that ends exist no more; `collect` deletes their files.

    In the transaction of the end, and before it is told: whoever hears of the end sees those that stay.
    """
    policy = ExperimentConfig.model_validate(experiment.config).checkpoint_storage
    doomed = superfluous(
        checkpoints.complete(transaction.connection, experiment_id=experiment.id),
        metric=experiment.metric,
        smaller_is_better=experiment.smaller_is_better,
        experiment_best=policy.save_experiment_best,
        trial_best=policy.save_trial_best,
        trial_latest=policy.save_trial_latest,
    )
    kept = protection.kept_of(transaction.connection, doomed)
    checkpoints.set_deleted(transaction, [uuid for uuid in doomed if uuid not in kept])


def collect(context: Context, experiment_id: int) -> None:
    """Delete the files of the checkpoints of an ended experiment that exist no more; their rows stay, as DELETED."""
    try:
        with context.database.write() as transaction:  # of a version that did not do this at the end, say
            experiment = experiments.get(transaction.connection, experiment_id)
            retire(transaction, experiment)
            found = checkpoints.of_experiment(transaction.connection, experiment_id)
        _delete_files(context, experiment, [one.uuid for one in found if one.state is CheckpointState.DELETED])
        storage_of(context, experiment).remove_leftovers()
        with context.database.write() as transaction:
            experiments.set_collected(transaction, experiment_id)
    except (DetError, OSError, OperationalError) as error:
        logger.error(
            "Checkpoints of experiment %d cannot be deleted now; the next start tries again: %s", experiment_id, error
        )


def collect_running(
    context: Context,
    experiment_id: int,
    trial_id: int | None = None,
    *,
    is_read: Callable[[str], bool] = lambda uuid: False,
    backed_up: str | None = None,
    last: int = LAST_WHILE_RUNNING,
) -> None:
    """Delete what is superfluous already of an experiment that goes on, or of a trial that has a new checkpoint.

    Parameters
    ----------
    trial_id : int, optional
        All trials are looked at without it, and where the best ones of the whole experiment are kept.
    is_read : callable
        Whether somebody is downloading a checkpoint: it stays for now.
    backed_up : str, optional
        When the database was backed up last.
    last : int
        How many of the last ones of each trial stay in any case.
    """
    with context.database.read() as connection:
        experiment = experiments.get(connection, experiment_id)
        if experiment.state.terminal:
            return
        policy = ExperimentConfig.model_validate(experiment.config).checkpoint_storage
        if policy.save_experiment_best:
            trial_id = None
        if trial_id is None:
            found = checkpoints.complete(connection, experiment_id=experiment_id)
        else:
            found = checkpoints.complete(connection, trial_id=trial_id)
        current = _current_runs(connection, experiment_id, trial_id)
        needed = protection.protected(connection).keys() | of_starting_runs(connection, found)
    doomed = superfluous_already(
        found,
        metric=experiment.metric,
        smaller_is_better=experiment.smaller_is_better,
        experiment_best=policy.save_experiment_best,
        trial_best=policy.save_trial_best,
        trial_latest=policy.save_trial_latest,
        last=last,
        runs=current,
        backed_up=backed_up,
    )
    gone = [uuid for uuid in doomed if uuid not in needed and not is_read(uuid)]
    if not gone:
        return
    try:
        try:
            gone = _tell_deleted(context, gone)
        except OperationalError as error:
            if not is_disk_full(error):
                raise
            # Which makes room to store that. Nobody can have registered one since: that could not be stored, either.
            _delete_files(context, experiment, gone)
            _tell_deleted(context, gone)
        else:
            _delete_files(context, experiment, gone)  # what fails here, `collect` does at the end
    except (DetError, OSError, OperationalError) as error:
        logger.warning("Superfluous checkpoints of experiment %d cannot be deleted now: %s", experiment_id, error)


def _current_runs(connection: Connection, experiment_id: int, trial_id: int | None) -> list[str]:
    """Return the latest runs of the trials that are looked at."""
    if trial_id is not None:
        run_id = trials.get(connection, trial_id).run_id
        return [] if run_id is None else [run_id]
    return [trial.run_id for trial in trials.of_experiment(connection, experiment_id) if trial.run_id is not None]


def of_starting_runs(connection: Connection, found: Iterable[rest.Checkpoint]) -> set[str]:
    """Return the checkpoints of trials whose worker may be reading them still: its run has none of its own yet."""
    publishing = {one.manifest.run_id for one in found}
    starting = {run.trial_id for run in runs.alive(connection) if run.run_id not in publishing}
    return {one.uuid for one in found if one.trial_id in starting}


def _tell_deleted(context: Context, uuids: Sequence[str]) -> list[str]:
    """Have checkpoints exist no more; return them, without those that somebody has come to need at this moment."""
    with context.database.write() as transaction:
        kept = protection.kept_of(transaction.connection, uuids)
        gone = [uuid for uuid in uuids if uuid not in kept]
        checkpoints.set_deleted(transaction, gone)
    return gone


def _delete_files(context: Context, experiment: rest.Experiment, uuids: Sequence[str]) -> None:
    if not uuids:
        return
    storage = storage_of(context, experiment)
    for uuid in uuids:
        storage.delete(uuid)


def clear_work(context: Context, run_id: str, experiment_id: int) -> None:
    """Remove the bundle's files from the working directories of a run that has ended; what the code wrote there stays.

    Where it wrote nothing, the directory goes too.
    """
    with context.database.read() as connection:
        bundle_id = experiments.get(connection, experiment_id).bundle_id
        if bundle_id is None:  # a kernel trains where it is
            return
        bundle = bundles.get(connection, bundle_id)
        run = runs.get(connection, run_id)
    for rank in range(len(run.log_offsets) if run is not None else 1):
        _clear_work(rank_folder(context.places.run(run_id), rank) / "work", bundle)


def _clear_work(work: Path, bundle: BundleManifest) -> None:
    folders: set[Path] = set()
    try:
        for link in bundle.links:
            prefix, _, name = link.path.rpartition("/")
            inside = safe_join(work, prefix) if prefix else work
            if (inside / name).is_symlink():
                (inside / name).unlink()
            folders.update(one for one in (inside, *inside.parents) if one.is_relative_to(work) and one != work)
        for file in bundle.files:
            path = safe_join(work, file.path)
            if path.is_file() and not path.is_symlink() and path.stat().st_size == file.size:
                path.unlink()
            folders.update(parent for parent in path.parents if parent.is_relative_to(work) and parent != work)
        for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        if work.is_dir() and not any(work.iterdir()):
            work.rmdir()
    except (DetError, OSError) as error:
        logger.warning("The working directory %s is not tidied: %s", work, error)


def clear_old_runs(context: Context) -> None:
    """Remove what the master and the worker keep of all but the last runs; the code's own files in ``work`` stay.

    Metrics and log lines are in the store since the run has ended. A run whose note says that a checkpoint may be
    unreported is left until the next worker has settled that: its spool tells.
    """
    root = context.places.run("x").parent
    if not root.is_dir():
        return
    unknown = {folder.name for folder in waiting(context)}
    newest_first = sorted((path.name for path in root.iterdir() if _is_run(path.name)), reverse=True)
    with context.database.read() as connection:
        alive = {run.run_id for run in runs.alive(connection)}
    for run_id in newest_first[KEPT_RUNS:]:
        if run_id in alive | unknown or (root / ".publishing" / f"{run_id}.json").exists():
            continue
        try:
            for path in (root / run_id).iterdir():
                if path.is_dir() and not path.is_symlink():
                    if path.name != "work":
                        shutil.rmtree(path)
                else:
                    path.unlink()
            if not any((root / run_id).iterdir()):
                (root / run_id).rmdir()
        except OSError as error:
            logger.warning("The folder of run %s is not removed: %s", run_id, error)


def _is_run(name: str) -> bool:
    return len(name) == 26 and set(name) <= set(ALPHABET)
