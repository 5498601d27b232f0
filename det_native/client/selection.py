"""Which trial and which checkpoints are best. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from det_native.errors import ArgumentError, CheckpointNotFoundError, NotFoundError
from det_native.past_history import as_number
from det_native.schema.ranking import checkpoints_best_first, score, trials_best_first
from det_native.schema.rest import Checkpoint, Experiment, ExperimentDetail, Trial
from det_native.schema.states import CheckpointState
from det_native.schema.trial_names import trial_name


def warning_of_better(metrics: Mapping[str, object], experiment: ExperimentDetail) -> str:
    """Return a sentence for a best checkpoint that is worse than the best epoch of a loop; empty if it is that epoch's.

    Parameters
    ----------
    metrics : mapping
        Of the checkpoint.
    """
    searcher = experiment.config.get("searcher") or {}
    metric, best = searcher.get("metric"), experiment.best_validation
    if experiment.validates or metric is None or best is None or metric not in metrics:
        return ""
    smaller = bool(searcher.get("smaller_is_better", True))
    has = score(metrics[metric], smaller_is_better=smaller)
    if has <= score(best, smaller_is_better=smaller) + 1e-12 * abs(has):
        return ""
    return (
        f"The best {metric}, {best:.4g}, was in an epoch that has no checkpoint: this one has "
        f"{as_number(metrics[metric]):.4g}. Checkpoints of short epochs are made by time; with "
        "min_checkpoint_period: {epochs: 1} in the configuration every epoch has one."
    )


def best_trial(trials: Sequence[Trial], *, smaller_is_better: bool) -> Trial | None:
    """Return the trial with the best validation; the oldest one while none has been validated."""
    ranked = trials_best_first(trials, smaller_is_better=smaller_is_better)
    return ranked[0] if ranked else None


def number_inside(experiment: int, named: int | None, number: int) -> int:
    """Return the number of a trial inside an experiment, of which it must be.

    Parameters
    ----------
    named : int or None
        The experiment that the trial was named with: the 7 of ``7.2``.

    Raises
    ------
    NotFoundError
        If it was named as that of another experiment.
    """
    if named not in (None, experiment):
        raise NotFoundError(f"Experiment {experiment} has no trial {trial_name(named or 0, number)}.")
    return number


def trial_to_continue(wanted: object, trials: Sequence[Trial], *, owner: str) -> Trial:
    """Return the trial of that number inside its experiment; if there is none, that with this id on the master.

    Raises
    ------
    ArgumentError
        If `wanted` is no whole number.
    NotFoundError
        If there is no such trial.
    """
    numbers = {trial.shown_number for trial in trials}
    for trial in trials:
        if type(wanted) is int and wanted not in numbers and trial.id == wanted:
            return trial
    return trial_with_number(wanted, trials, owner=owner)


def trial_with_number(number: object, trials: Sequence[Trial], *, owner: str) -> Trial:
    """Return the trial of that number inside its experiment.

    Parameters
    ----------
    number : int
        From 1.
    trials : sequence of Trial
        Those of the experiment.
    owner : str
        ``Experiment 7``, for what is said where there is no such trial.

    Raises
    ------
    ArgumentError
        If `number` is no whole number.
    NotFoundError
        If there is no such trial.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise ArgumentError(f"A trial is named by its number inside the experiment, 1, 2 ..., not by {number!r}.")
    for trial in trials:
        if trial.shown_number == number:
            return trial
    if not trials:
        raise NotFoundError(f"{owner} has no trial yet.")
    numbers = [trial.shown_number for trial in trials]
    has = "only trial 1" if numbers == [1] else f"trials {min(numbers)} to {max(numbers)}"
    raise NotFoundError(f"{owner} has no trial {number}; it has {has}.")


def top_checkpoints(
    checkpoints: Sequence[Checkpoint], *, metric: str, smaller_is_better: bool, limit: int, per_trial: bool = True
) -> list[Checkpoint]:
    """Return the best checkpoints, best first; which of equal ones, `det_native.schema.ranking` says.

    Checkpoints that were not validated come in only while no checkpoint was (a run without validation data): then the
    newest one of each trial.

    Parameters
    ----------
    checkpoints : sequence of Checkpoint
        Oldest first.
    metric : str
        The validation metric to compare by.
    limit : int
        How many at most.
    per_trial : bool
        One of each trial only.
    """
    existing = [checkpoint for checkpoint in checkpoints if checkpoint.state is CheckpointState.COMPLETED]
    validated = [checkpoint for checkpoint in existing if checkpoint.metrics]

    candidates = [checkpoint for checkpoint in validated if metric in checkpoint.metrics] if validated else existing
    ranked = checkpoints_best_first(candidates, metric=metric, smaller_is_better=smaller_is_better)
    if per_trial:
        first_of_trial: dict[int, Checkpoint] = {}
        for checkpoint in ranked:
            first_of_trial.setdefault(checkpoint.trial_id, checkpoint)
        ranked = list(first_of_trial.values())
    return ranked[:limit]


def best_checkpoints(
    found: Sequence[Checkpoint],
    experiment: Experiment,
    *,
    owner: str,
    sort_by: str | None,
    smaller_is_better: bool | None,
    limit: int,
    per_trial: bool,
) -> list[Checkpoint]:
    """Return the best checkpoints by the searcher's metric or another one, best first.

    Parameters
    ----------
    found : sequence of Checkpoint
        Oldest first.
    experiment : Experiment
        Says what to compare by where `sort_by` and `smaller_is_better` are None.
    owner : str
        Whose checkpoints they are, for the message.
    per_trial : bool
        See ``top_checkpoints``.

    Raises
    ------
    CheckpointNotFoundError
        If there is none.
    """
    top = top_checkpoints(
        found,
        metric=sort_by or experiment.metric,
        smaller_is_better=experiment.smaller_is_better if smaller_is_better is None else smaller_is_better,
        limit=limit,
        per_trial=per_trial,
    )
    if not top:
        raise CheckpointNotFoundError(_no_checkpoint(owner, experiment, found, sort_by))
    return top


def checked_choice(*, latest: object, best: object, uuid: object, sort_by: object, smaller_is_better: object) -> None:
    """Refuse what ``select_checkpoint()`` cannot be asked.

    Raises
    ------
    ArgumentError
        Unless exactly one of `latest`, `best` and `uuid` is given, and `sort_by` and `smaller_is_better` together, with
        `best` only.
    """
    given = [name for name, value in (("latest", latest), ("best", best), ("uuid", uuid)) if value]
    if len(given) != 1:
        has = "none of them is given" if not given else f"{' and '.join(given)} are given"
        raise ArgumentError(f"select_checkpoint() takes exactly one of latest=True, best=True and uuid=...; {has}.")
    if (sort_by is None) != (smaller_is_better is None):
        lacks = "smaller_is_better" if smaller_is_better is None else "sort_by"
        raise ArgumentError(f"sort_by and smaller_is_better belong together; {lacks} is missing.")
    if sort_by is not None and not best:
        raise ArgumentError(f"sort_by and smaller_is_better say which one is best; they do not go with {given[0]}.")


def latest_checkpoint(found: Sequence[Checkpoint], experiment: Experiment, *, owner: str) -> Checkpoint:
    """Return the checkpoint that was taken last.

    Raises
    ------
    CheckpointNotFoundError
        If there is none.
    """
    existing = [checkpoint for checkpoint in found if checkpoint.state is CheckpointState.COMPLETED]
    if not existing:
        raise CheckpointNotFoundError(_no_checkpoint(owner, experiment, found, None))
    return max(existing, key=lambda one: (one.created, one.trial_id, one.batch))


def checkpoint_named(uuid: str, found: Sequence[Checkpoint], *, owner: str) -> Checkpoint:
    """Return the checkpoint with a uuid, or the one whose uuid begins so.

    Raises
    ------
    ArgumentError
        If `uuid` is no text, or several begin so.
    CheckpointNotFoundError
        If there is none, or it was deleted.
    """
    if not isinstance(uuid, str) or not uuid:
        raise ArgumentError(f"The uuid of a checkpoint is a text such as '0b6d...', not {uuid!r}.")
    matches = [checkpoint for checkpoint in found if checkpoint.uuid.startswith(uuid)]
    matches = [checkpoint for checkpoint in matches if checkpoint.uuid == uuid] or matches
    existing = [checkpoint for checkpoint in matches if checkpoint.state is CheckpointState.COMPLETED]
    if len(existing) > 1:
        several = ", ".join(checkpoint.uuid for checkpoint in existing)
        raise ArgumentError(f"{owner} has several checkpoints that begin with {uuid!r}: {several}.")
    if existing:
        return existing[0]
    if matches:
        raise CheckpointNotFoundError(
            f"Checkpoint {matches[0].uuid} of {owner.lower()} was deleted: the configuration's checkpoint_storage says "
            "how many are kept (save_experiment_best, save_trial_best, save_trial_latest)."
        )
    raise CheckpointNotFoundError(f"{owner} has no checkpoint {uuid!r}; experiment.checkpoints lists those it has.")


def _no_checkpoint(owner: str, experiment: Experiment, found: Sequence[Checkpoint], sort_by: str | None) -> str:
    known = sorted({name for checkpoint in found for name in checkpoint.metrics})
    if sort_by is not None and known:
        return f"{owner} has no checkpoint with a metric {sort_by!r}; its checkpoints have: {', '.join(known)}."
    if experiment.state.terminal:
        return f"{owner} has no checkpoint; it is {experiment.state}."
    return f"{owner} has no checkpoint yet; experiment.wait() waits for its end."
