"""The weights of an experiment, into objects of this process: which checkpoint, its files, and what may go wrong."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.client import selection, waiting
from det_native.client.short_forms import UUID_LENGTH
from det_native.client.source import Source
from det_native.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ExperimentFailedError,
    MasterError,
    NotFoundError,
)
from det_native.heap.call import LARGE
from det_native.schema import rest
from det_native.schema.config import WeightsAfter
from det_native.schema.environment import TrialEnvironment
from det_native.schema.states import CheckpointState, ExperimentState


def detail_of(source: Source, experiment_id: int) -> rest.ExperimentDetail:
    """Return what is known of an experiment.

    Raises
    ------
    NotFoundError
        If it is not there any more.
    """
    try:
        return source.experiment(experiment_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"Experiment {experiment_id} is not there any more, so its weights cannot be loaded ({error})."
        ) from None


def weights_setting(detail: rest.ExperimentDetail) -> WeightsAfter:
    """Return which weights the configuration asks for; an experiment of an earlier version has the default."""
    weights: WeightsAfter = detail.config.get("weights", "last")
    return weights


def refuse_unfinished(source: Source, experiment_id: int, detail: rest.ExperimentDetail) -> None:
    """Raise why there are no weights of a whole training.

    Raises
    ------
    ExperimentFailedError
        If the experiment has failed, was stopped, or goes on.
    """
    waiting.raise_failure(source, experiment_id, detail)
    if detail.state is not ExperimentState.COMPLETED:
        raise ExperimentFailedError(
            f"Experiment {experiment_id} is {detail.state}, so there are no weights of a whole training: "
            f"det.experiment({experiment_id!r}).load_into(model) loads its last checkpoint, if it has any."
        )


def warn_unfinished(
    source: Source, experiment_id: int, detail: rest.ExperimentDetail, checkpoint: rest.Checkpoint
) -> None:
    """Say that the training that a checkpoint is of was not whole."""
    if detail.state is ExperimentState.COMPLETED:
        return
    target = source.trial(checkpoint.trial_id).target_batches
    of = f" of {target}" if target else ""
    warnings.warn(
        f"Experiment {experiment_id} is {detail.state}: what is loaded is its last checkpoint, of batch "
        f"{checkpoint.batch}{of}.",
        UserWarning,
        stacklevel=3,
    )


def checkpoint_to_load(
    source: Source, experiment_id: int, detail: rest.ExperimentDetail, weights: WeightsAfter
) -> rest.Checkpoint:
    """Return the checkpoint of an experiment, in a search of its best trial, that has the wanted weights.

    Raises
    ------
    CheckpointNotFoundError
        If there is none, or it was deleted.
    """
    owner = f"Experiment {experiment_id}"
    trial = selection.best_trial(source.trials(experiment_id), smaller_is_better=detail.smaller_is_better)
    of_trial = [] if trial is None else source.checkpoints(trial_id=trial.id)
    if not of_trial:
        waiting.raise_failure(source, experiment_id, detail)
        raise CheckpointNotFoundError(f"{owner} is {detail.state} and has no checkpoint, so no weights.")
    if weights == "best":
        return selection.best_checkpoints(
            of_trial, detail, owner=owner, sort_by=None, smaller_is_better=None, limit=1, per_trial=True
        )[0]
    last = max(of_trial, key=lambda checkpoint: (checkpoint.batch, checkpoint.created))
    if last.state is CheckpointState.COMPLETED:
        return last
    raise CheckpointNotFoundError(
        f"The last checkpoint of {owner.lower()}, of batch {last.batch}, was deleted: "
        "checkpoint_storage.save_trial_latest of its configuration is 0. Set it to 1, or `weights` to 'best'."
    )


def files_apart(checkpoint: rest.Checkpoint) -> list[Any]:
    """Return the files of a checkpoint that come only when they are asked for."""
    return [file for file in checkpoint.manifest.files if file.path.endswith(LARGE)]


@contextmanager
def files_of(source: Source, experiment_id: int, checkpoint: rest.Checkpoint, *, large: bool = False) -> Iterator[Path]:
    """Give a temporary folder with the files of a checkpoint, verified; with what exceeds the limit, or only that.

    Raises
    ------
    CheckpointCorruptError
        If it is damaged; the message names another one.
    """
    manifest = checkpoint.manifest
    files = tuple(file for file in manifest.files if (file in files_apart(checkpoint)) is large)
    wanted = checkpoint.model_copy(update={"manifest": manifest.model_copy(update={"files": files})})
    with tempfile.TemporaryDirectory(prefix="det-checkpoint-") as folder:
        try:
            source.download(wanted, Path(folder))
        except CheckpointCorruptError as error:
            raise CheckpointCorruptError(f"{error} {_instead(source, experiment_id, checkpoint)}") from None
        yield Path(folder)


def into_call(source: Source, experiment_id: int, checkpoint: rest.Checkpoint, call: Any) -> list[str]:
    """Put a checkpoint into the objects of a captured call; return a sentence for each that stays as it was.

    Raises
    ------
    CheckpointError
        If it is damaged, or does not fit.
    """
    from det_harness.program.load import load_into

    with files_of(source, experiment_id, checkpoint) as folder:
        return load_into(call, folder)


def into_objects(
    source: Source,
    experiment_id: int,
    detail: rest.ExperimentDetail,
    checkpoint: rest.Checkpoint,
    target: Any,
    optimizer: Any,
) -> None:
    """Put a checkpoint into objects that the user names.

    Raises
    ------
    ArgumentError
        If they are none that its framework trains.
    CheckpointError
        If it is damaged, or does not fit.
    """
    from det_harness.program.load import load_into_objects

    environment = TrialEnvironment(
        config=detail.config,
        hparams=checkpoint.manifest.hparams,
        experiment_id=checkpoint.experiment_id,
        trial_id=checkpoint.trial_id,
        trial_seed=source.trial(checkpoint.trial_id).seed,
    )
    with files_of(source, experiment_id, checkpoint) as folder:
        load_into_objects(detail.framework, target, optimizer, folder, environment)


def _instead(source: Source, experiment_id: int, checkpoint: rest.Checkpoint) -> str:
    try:
        whole = source.instead(checkpoint)
    except MasterError:  # it takes too long, say: the damage is what has to be told
        whole = None
    if whole is None:
        return f"Nothing is loaded; det.experiment({experiment_id!r}).checkpoints lists those that there are."
    return (
        f"Nothing is loaded; that of batch {whole.batch} is whole: "
        f"det.experiment({experiment_id!r}).load_into(model, checkpoint={whole.uuid[:UUID_LENGTH]!r})."
    )
