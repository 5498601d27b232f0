"""What follows from a worker's job alone: the same in its process, and in those of a command that it has started."""

from __future__ import annotations

from pathlib import Path

from det_harness.ranks.gang import ranks_of
from det_harness.trial.checkpoint import CheckpointOwner
from det_harness.trial.publications import Publications
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import TrialJob
from det_native.storage.blobs import BlobStore


def environment_of(job: TrialJob) -> TrialEnvironment:
    """Return the facts that the trial is run with."""
    return TrialEnvironment(
        config=job.config,
        hparams=job.hparams,
        experiment_id=job.experiment_id,
        trial_id=job.trial_id,
        trial_seed=job.trial_seed,
        ranks=ranks_of(job.gang),
        stage=job.stage,
    )


def owner_of(job: TrialJob) -> CheckpointOwner:
    """Return whose checkpoints the job's are."""
    return CheckpointOwner(
        framework=job.bundle.program.framework,
        hparams=job.hparams,
        experiment_id=job.experiment_id,
        trial_id=job.trial_id,
        run_id=job.run_id,
        bundle_id=job.bundle_id,
    )


def journal_of(job: TrialJob) -> Publications:
    """Return where the checkpoints of the run are noted until they are reported."""
    return Publications(Path(job.directory), job.run_id, job.checkpoints, job.checkpoint_options)


def outputs_of(job: TrialJob) -> BlobStore:
    """Return where goes what the code writes and logs."""
    return BlobStore(job.outputs or job.blobs, job.storage_options)
