"""Which checkpoints of a local experiment stay."""

from __future__ import annotations

from det_native.local.store import LocalStore
from det_native.schema.config import ExperimentConfig
from det_native.schema.retention import superfluous
from det_native.schema.states import CheckpointState


def delete_superfluous(store: LocalStore, config: ExperimentConfig) -> None:
    """Delete the checkpoints that the configuration does not keep; what is known of them stays, as on a master."""
    from det_harness.program.load import delete_checkpoint

    policy = config.checkpoint_storage
    found = {trial.id: store.checkpoints(trial.id) for trial in store.trials()}
    doomed = set(
        superfluous(
            [one for mine in found.values() for one in mine],
            metric=config.searcher.metric or "",
            smaller_is_better=config.searcher.smaller_is_better,
            experiment_best=policy.save_experiment_best,
            trial_best=policy.save_trial_best,
            trial_latest=policy.save_trial_latest,
        )
    )
    for trial_id, mine in found.items():
        gone = {one.uuid for one in mine if one.uuid in doomed and not one.pinned}
        if not gone:
            continue
        for one in mine:
            if one.uuid in gone:
                delete_checkpoint(one)
        deleted = {"state": CheckpointState.DELETED}
        rows = [one.model_copy(update=deleted) if one.uuid in gone else one for one in mine]
        store.write_checkpoints(trial_id, rows)
