"""What becomes of an experiment: it is named, labelled, archived; forked and continued; keeps fewer checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from det_native._version import PROTOCOL
from det_native.errors import ArgumentError, CheckpointNotFoundError, NotFoundError, RequestError
from det_native.master.flow.collection import retire
from det_native.master.flow.context import Context, tell_experiment
from det_native.master.flow.creation import Forked
from det_native.master.flow.take_in import roots
from det_native.master.store import checkpoints, experiments, life, trials
from det_native.schema import rest
from det_native.schema.forks import continued_config, forked_config
from det_native.schema.life import ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.states import CheckpointState
from det_native.schema.trial_names import trial_name

logger = logging.getLogger(__name__)

_LISTED = ("description", "labels", "project")
FORKED, CONTINUED = "Fork of {}", "Continuation of {}"


def describe(context: Context, experiment_id: int, owner: str, change: rest.ExperimentChange) -> rest.Experiment:
    """Change what people write of an experiment, tell it, and return the experiment.

    Raises
    ------
    NotFoundError
        If there is no such experiment of this owner.
    RequestError
        If it is to be archived and goes on, or its notes are others than those that the change was made of.
    ArgumentError
        If it would have an empty name or label.
    """
    with context.database.write() as transaction:
        experiment = experiments.get(transaction.connection, experiment_id, owner)
        values = changed_values(change, experiment)
        if values.get("archived") and not experiment.state.terminal:
            raise RequestError(
                409,
                f"Experiment {experiment_id} goes on and cannot be archived: archive it once it has ended, or end it "
                f"by det.experiment({experiment_id}).kill().",
            )
        if change.notes_before is not None:
            _check_notes(experiments.get_notes(transaction.connection, experiment_id), change)
        life.describe(transaction, experiment_id, values)
        return tell_experiment(transaction, experiment_id) if values else experiment


def _check_notes(notes: str, change: rest.ExperimentChange) -> None:
    if notes not in (change.notes_before, change.notes):
        raise RequestError(
            409, "notes: somebody else has changed them meanwhile; read them again, then write what both of you mean."
        )


def fork(
    context: Context, experiment_id: int, owner: str, wanted: ExperimentFork
) -> tuple[rest.ExperimentCreate, Forked]:
    """Return the submission of an experiment's program with another configuration.

    Raises
    ------
    NotFoundError
        If there is no such experiment of this owner.
    ArgumentError
        If the program has not a hyperparameter of a name that is given.
    """
    with context.database.read() as connection:
        detail = experiments.get_detail(connection, experiment_id, owner)
    config = forked_config(_of_workers(context, detail), wanted.config, wanted.hyperparameters)
    named = wanted.name or wanted.config.get("name") or FORKED.format(detail.name)
    return _submission(detail, config, named, wanted.config)


def continuation(
    context: Context, experiment_id: int, owner: str, wanted: ExperimentContinuation
) -> tuple[rest.ExperimentCreate, Forked]:
    """Return the submission of an experiment that begins with a checkpoint of another one and trains so much longer.

    Raises
    ------
    NotFoundError
        If there is no such experiment of this owner, or it has not that trial or checkpoint.
    CheckpointNotFoundError
        If there is no checkpoint to begin with.
    """
    with context.database.read() as connection:
        detail = experiments.get_detail(connection, experiment_id, owner)
        found = trials.of_experiment(connection, experiment_id, owner)
        source = _source(connection, detail, found, wanted)
    trial = next(trial for trial in found if trial.id == source.trial_id)
    config = continued_config(
        _of_workers(context, detail),
        trial.hparams,
        source.uuid,
        {wanted.unit: wanted.length},
        framework=detail.framework,
    )
    return _submission(detail, config, wanted.name or CONTINUED.format(detail.name))


def _of_workers(context: Context, detail: rest.ExperimentDetail) -> dict[str, Any]:
    """Return a configuration without the folder in which only its kernel could keep checkpoints."""
    storage = detail.config.get("checkpoint_storage") or {}
    place = Path(storage.get("url") or "")
    spare = [root / "checkpoints" for root in roots(context.places.home)][1:]
    if not detail.in_kernel or not place.is_absolute() or (place.is_dir() and place not in spare):
        return detail.config
    return {
        **detail.config,
        "checkpoint_storage": {key: storage[key] for key in Retention.model_fields if key in storage},
    }


def _source(
    connection: Any, detail: rest.ExperimentDetail, found: list[rest.Trial], wanted: ExperimentContinuation
) -> rest.Checkpoint:
    """Return the checkpoint that a continuation begins with."""
    names = {trial.id: trial_name(detail.id, trial.shown_number) for trial in found}
    if wanted.checkpoint is not None:
        source = checkpoints.get(connection, wanted.checkpoint)
        if source.experiment_id != detail.id or wanted.trial not in (None, source.trial_id):
            owner = (
                f"Experiment {detail.id}" if wanted.trial is None else f"Trial {names.get(wanted.trial, wanted.trial)}"
            )
            raise NotFoundError(f"{owner} has no checkpoint {wanted.checkpoint}.")
        if source.state is not CheckpointState.COMPLETED:
            raise CheckpointNotFoundError(f"Checkpoint {wanted.checkpoint} has been deleted. Name another one.")
        return source
    of_trial = {trial.id: checkpoints.latest(connection, trial.id) for trial in found}
    if wanted.trial is not None:
        if wanted.trial not in of_trial:
            raise NotFoundError(f"Experiment {detail.id} has no trial {wanted.trial}.")
        last = of_trial[wanted.trial]
        if last is None:
            raise CheckpointNotFoundError(f"Trial {names[wanted.trial]} has no checkpoint to continue from.")
        return last
    sign = 1 if detail.smaller_is_better else -1
    # Those that were never validated come last, the newest of them first.
    order = [(trial.best_validation is None, sign * (trial.best_validation or 0.0), -trial.id) for trial in found]
    for _, trial in sorted(zip(order, found, strict=True), key=lambda pair: pair[0]):
        last = of_trial[trial.id]
        if last is not None:
            return last
    raise CheckpointNotFoundError(f"Experiment {detail.id} has no checkpoint to continue from.")


def _submission(
    detail: rest.ExperimentDetail, config: dict[str, Any], name: str, given: Mapping[str, Any] = MappingProxyType({})
) -> tuple[rest.ExperimentCreate, Forked]:
    """Return the submission of a configuration for the program of an experiment, and what it is listed with.

    That is what people have written of the first one, but for what is `given`.
    """
    if detail.bundle_id is None:
        raise RequestError(
            409,
            f"The code of experiment {detail.id} is not kept, so that nothing can be made of it: {detail.no_program}",
        )
    body = rest.ExperimentCreate(
        protocol=PROTOCOL,
        config={**config, "name": name},
        bundle_id=detail.bundle_id,
        report=[row.model_copy(update={"status": _there(row)}) for row in detail.report],
    )
    said = rest.ExperimentChange.model_validate({name: given[name] for name in _LISTED if given.get(name) is not None})
    listed = changed_values(said, detail)
    return body, Forked(
        detail.id,
        description=listed.get("description", detail.description),
        labels=tuple(listed.get("labels", detail.labels)),
        project=listed.get("project", detail.project),
    )


def _there(row: rest.CaptureRow) -> str:
    return "already there" if row.status == "new" else row.status


def retain(context: Context, experiment_id: int, owner: str, wanted: Retention) -> Retained:
    """Change how many checkpoints of an experiment stay; return what that frees.

    Raises
    ------
    NotFoundError
        If there is no such experiment of this owner.
    """
    with context.database.write() as transaction:
        experiment = experiments.get(transaction.connection, experiment_id, owner)
        storage = {**(experiment.config.get("checkpoint_storage") or {}), **wanted.model_dump()}
        life.set_config(transaction, experiment_id, {**experiment.config, "checkpoint_storage": storage})
        changed = tell_experiment(transaction, experiment_id)
        found = checkpoints.complete(transaction.connection, experiment_id=experiment_id)
        if experiment.state.terminal:
            retire(transaction, changed)
        after = {one.uuid for one in checkpoints.complete(transaction.connection, experiment_id=experiment_id)}
    gone = [one.size for one in found if one.uuid not in after]
    logger.info("experiment %d keeps %s: %d checkpoints go", experiment_id, wanted.model_dump(), len(gone))
    return Retained(deleted=len(gone), bytes=sum(gone), stay=len(after), going_on=not experiment.state.terminal)


def changed_values(change: rest.ExperimentChange, experiment: rest.Experiment) -> dict[str, Any]:
    """Return the facts of an experiment that a change sets, by name, as they are then.

    Raises
    ------
    ArgumentError
        If it would have an empty name or label.
    """
    values: dict[str, Any] = {}
    if change.name is not None:
        values["name"] = change.name.strip()
        if not values["name"]:
            raise ArgumentError("name: an experiment needs a name of more than spaces.")
    for field in ("description", "notes", "archived"):
        if (given := getattr(change, field)) is not None:
            values[field] = given
    if change.project is not None:
        values["project"] = "/".join(part.strip() for part in change.project.split("/") if part.strip())
    if change.labels is not None or change.add_labels or change.remove_labels:
        kept = experiment.labels if change.labels is None else change.labels
        added = [*kept, *change.add_labels]
        labels = [label.strip() for label in added]
        if not all(labels):
            raise ArgumentError("labels: a label of nothing but spaces cannot be seen.")
        removed = {label.strip() for label in change.remove_labels}
        values["labels"] = [label for label in dict.fromkeys(labels) if label not in removed]
    return values
