"""Trials that begin with the weights of another trial: which checkpoint that is, and where it lies."""

from __future__ import annotations

from sqlalchemy import Connection

from det_native.errors import CheckpointError, CheckpointNotFoundError
from det_native.master.flow.context import Context
from det_native.master.flow.places_of_checkpoints import place_of, storage_of
from det_native.master.store import checkpoints, experiments, trials
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import Framework, Program
from det_native.schema.states import CheckpointState


def check_source(
    connection: Connection, config: ExperimentConfig, owner: str, framework: Framework
) -> rest.Checkpoint | None:
    """Refuse an experiment whose trials cannot begin with what its configuration names; return that, if it does.

    Raises
    ------
    NotFoundError
        If the owner has no such trial or checkpoint.
    CheckpointError
        If the checkpoint is gone, or of another framework, or the trial has none.
    """
    found = _named(connection, config, owner)
    if found is None:
        return None
    field, source = found
    if source is None:
        raise CheckpointError(f"{field}: that trial has no checkpoint to begin with. Name another one.")
    if source.state is not CheckpointState.COMPLETED:
        raise CheckpointError(f"{field}: checkpoint {source.uuid} has been deleted. Name another one.")
    if source.manifest.framework != framework:
        raise CheckpointError(
            f"{field}: checkpoint {source.uuid} was made by {source.manifest.framework}, this experiment trains with "
            f"{framework}. Name a checkpoint of the same framework."
        )
    return source


def weights_for(
    connection: Connection, experiment: rest.Experiment, config: ExperimentConfig, parent: int | None
) -> rest.Checkpoint | None:
    """Return the checkpoint that a new trial begins with: of its parent in the search, or what is configured."""
    if parent is not None:
        return checkpoints.latest(connection, trials.with_request(connection, experiment.id, parent).id)
    found = _named(connection, config, experiments.owner_of(connection, experiment.id))
    return None if found is None else found[1]


def source_of(context: Context, trial: rest.Trial) -> WarmStartSource | None:
    """Return what a worker needs to begin a trial with the weights of another one; None if it does not.

    Raises
    ------
    CheckpointError
        If files of the checkpoint are missing.
    """
    if trial.warm_start is None:
        return None
    with context.database.read() as connection:
        source = checkpoints.get(connection, trial.warm_start)
        own = checkpoints.latest(connection, trial.id)
        experiment = experiments.get(connection, source.experiment_id)
        searcher = experiments.config_of(connection, trial.experiment_id).get("searcher") or {}
    storage = storage_of(context, experiment)
    # A copy of another trial of the same search begins with its weights only.
    optimizers = bool(searcher.get("source_optimizer")) and source.experiment_id != trial.experiment_id
    if own is None:  # else it is only needed if all checkpoints of the trial's own are damaged
        storage.check(source.manifest)
    address = place_of(context, experiment)
    return WarmStartSource(
        checkpoints=address.url, manifest=source.manifest, options=address.options, optimizers=optimizers
    )


def check_earlier(connection: Connection, program: Program, owner: str) -> None:
    """Refuse an experiment whose program cannot load what its earlier training calls have trained.

    Raises
    ------
    NotFoundError
        If the owner has no such checkpoint.
    CheckpointNotFoundError
        If it is gone.
    """
    for uuid in sorted(program.earlier_checkpoints):
        found = checkpoints.get(connection, uuid, owner)
        if found.state is not CheckpointState.COMPLETED:
            raise CheckpointNotFoundError(
                f"Checkpoint {uuid} of experiment {found.experiment_id}, from which this training goes "
                "on, has been deleted: checkpoint_storage of its configuration says how many are kept."
            )


def earlier_of(context: Context, program: Program) -> dict[str, WarmStartSource]:
    """Return where the checkpoints lie that earlier training calls of a program have made, by uuid."""
    sources = {}
    for uuid in program.earlier_checkpoints:
        with context.database.read() as connection:
            source = checkpoints.get(connection, uuid)
            experiment = experiments.get(connection, source.experiment_id)
        url, options = place_of(context, experiment)
        sources[uuid] = WarmStartSource(checkpoints=url, manifest=source.manifest, options=options)
    return sources


def _named(connection: Connection, config: ExperimentConfig, owner: str) -> tuple[str, rest.Checkpoint | None] | None:
    """Return the field that names where all trials begin, and the checkpoint; None if none does."""
    searcher = config.searcher
    if searcher.source_checkpoint_uuid is not None:
        field = f"searcher.source_checkpoint_uuid: {searcher.source_checkpoint_uuid}"
        return field, checkpoints.get(connection, searcher.source_checkpoint_uuid, owner)
    if searcher.source_trial_id is not None:
        source = trials.get(connection, searcher.source_trial_id, owner)
        return f"searcher.source_trial_id: {source.id}", checkpoints.latest(connection, source.id)
    return None
