"""What is superfluous once an experiment or a run has ended, and its deletion."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from det_native.errors import DetError
from det_native.master.flow.context import Context
from det_native.master.flow.jobs import checkpoint_uri
from det_native.master.store import bundles, checkpoints, events, experiments
from det_native.master.store.encoding import number
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.states import CheckpointState
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.paths import safe_join

logger = logging.getLogger(__name__)


def superfluous(
    found: Sequence[rest.Checkpoint],
    *,
    metric: str,
    smaller_is_better: bool,
    experiment_best: int,
    trial_best: int,
    trial_latest: int,
) -> list[str]:
    """Return the uuids of the checkpoints to delete.

    A checkpoint stays if it is among the `trial_latest` last ones of its trial, or has a value of the metric and is
    among the `trial_best` best ones of its trial or the `experiment_best` best ones of the experiment.
    """
    complete = [one for one in found if one.state is CheckpointState.COMPLETED]
    kept: set[str] = set()
    scored = []
    for one in complete:
        value = number(one.metrics.get(metric))
        if value is not None and value == value:
            scored.append((value if smaller_is_better else -value, one.created, one.uuid, one))
    scored.sort(key=lambda entry: entry[:3])
    kept.update(entry[3].uuid for entry in scored[:experiment_best])
    for trial_id in {one.trial_id for one in complete}:
        best = [entry[3].uuid for entry in scored if entry[3].trial_id == trial_id]
        kept.update(best[:trial_best])
        mine = sorted((one for one in complete if one.trial_id == trial_id), key=lambda one: (one.batch, one.created))
        kept.update(one.uuid for one in mine[max(len(mine) - trial_latest, 0) :])
    return [one.uuid for one in complete if one.uuid not in kept]


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
    """Remove the bundle's files from the working directory of a run that has ended; what the code wrote there stays.

    Where it wrote nothing, the directory goes too.
    """
    work = context.places.run(run_id) / "work"
    with context.database.read() as connection:
        bundle_id = experiments.get(connection, experiment_id).bundle_id
        assert bundle_id is not None
        bundle = bundles.get(connection, bundle_id)
    folders: set[Path] = set()
    try:
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
        logger.warning("The working directory of run %s is not tidied: %s", run_id, error)


def _mark_deleted(context: Context, experiment_id: int, uuid: str) -> None:
    with context.database.write() as transaction:
        checkpoints.set_deleted(transaction, uuid)
        checkpoint = checkpoints.get(transaction.connection, uuid)
        owner = experiments.owner_of(transaction.connection, experiment_id)
        data = checkpoint.model_dump(mode="json")
        events.emit(transaction, owner, "checkpoint", experiment_id, checkpoint.trial_id, data)
