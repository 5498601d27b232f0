"""What is superfluous once an experiment or a run has ended is deleted."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from det_native.errors import DetError
from det_native.master.flow.context import Context
from det_native.master.flow.jobs import checkpoint_uri
from det_native.master.store import bundles, checkpoints, events, experiments, runs
from det_native.schema.config import ExperimentConfig
from det_native.schema.manifests import BundleManifest
from det_native.schema.ranks import rank_folder
from det_native.schema.retention import superfluous
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.paths import safe_join

logger = logging.getLogger(__name__)

#: Ended runs whose output and reports stay on disk.
KEPT_RUNS = 100


def collect(context: Context, experiment_id: int) -> None:
    """Delete the superfluous checkpoints of an ended experiment; their rows stay, as DELETED."""
    with context.database.read() as connection:
        experiment = experiments.get(connection, experiment_id)
        found = checkpoints.of_experiment(connection, experiment_id)
    config = ExperimentConfig.model_validate(experiment.config)
    policy = config.checkpoint_storage
    doomed = superfluous(
        found,
        metric=experiment.metric,
        smaller_is_better=experiment.smaller_is_better,
        experiment_best=policy.save_experiment_best,
        trial_best=policy.save_trial_best,
        trial_latest=policy.save_trial_latest,
    )
    try:
        storage = CheckpointStorage(checkpoint_uri(config, context.places))
        for uuid in doomed:
            storage.delete(uuid)
            _mark_deleted(context, experiment_id, uuid)
    except (DetError, OSError) as error:
        logger.error(
            "Checkpoints of experiment %d cannot be deleted now; the next start tries again: %s", experiment_id, error
        )
        return
    with context.database.write() as transaction:
        experiments.set_collected(transaction, experiment_id)


def clear_work(context: Context, run_id: str, experiment_id: int) -> None:
    """Remove the bundle's files from the working directories of a run that has ended; what the code wrote there stays.

    Where it wrote nothing, the directory goes too.
    """
    with context.database.read() as connection:
        bundle_id = experiments.get(connection, experiment_id).bundle_id
        assert bundle_id is not None
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
    newest_first = sorted((path.name for path in root.iterdir() if _is_run(path.name)), reverse=True)
    with context.database.read() as connection:
        alive = {run.run_id for run in runs.alive(connection)}
    for run_id in newest_first[KEPT_RUNS:]:
        if run_id in alive or (root / ".publishing" / f"{run_id}.json").exists():
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
    return len(name) == 26 and set(name) <= set(runs.ALPHABET)


def _mark_deleted(context: Context, experiment_id: int, uuid: str) -> None:
    with context.database.write() as transaction:
        checkpoints.set_deleted(transaction, uuid)
        checkpoint = checkpoints.get(transaction.connection, uuid)
        owner = experiments.owner_of(transaction.connection, experiment_id)
        data = checkpoint.model_dump(mode="json")
        events.emit(transaction, owner, "checkpoint", experiment_id, checkpoint.trial_id, data)
