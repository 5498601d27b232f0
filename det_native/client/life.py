"""The life of an experiment behind its handle: described, deleted, forked, continued, moved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from det_native.client.artifacts import shown_size
from det_native.client.selection import trial_to_continue
from det_native.errors import ArgumentError, ConfigurationError, RequestError
from det_native.schema import rest
from det_native.schema.life import Deletion, ExperimentContinuation, ExperimentFork, Retained, Retention
from det_native.schema.reading import plain_mapping, read

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from det_native.client.source import Source

_LONGEST_NAME = 1_000
_SHOWN = 60  # characters of a value in an error
ConfigChanges = Mapping[str, Any] | str | os.PathLike[str] | None


def describe(source: Source, experiment_id: int, **change: Any) -> None:
    """Change what people write of an experiment.

    Raises
    ------
    ArgumentError
        If a value is none that the field may have.
    RequestError
        If it is to be archived and goes on.
    """
    from pydantic import ValidationError

    try:
        body = rest.ExperimentChange.model_validate(change, strict=True)
    except ValidationError as error:
        raise ArgumentError(refusal(error)) from None
    source.change(experiment_id, body)


def refusal(error: ValidationError) -> str:
    """Return what is wrong with a value, which is shown as far as it is short."""
    problem = error.errors()[0]
    field, limits = str(problem["loc"][0]), problem.get("ctx") or {}
    match problem["type"]:
        case "string_too_long":
            what = "a label" if field.endswith("labels") else "a text"
            return f"{field}: {what} of at most {limits['max_length']:,} characters is wanted, not {_length(problem)}."
        case "string_too_short":
            return f"{field}: a text is wanted, not an empty one."
        case "too_long":
            return f"{field}: at most {limits['max_length']:,} are wanted, not {limits['actual_length']:,}."
    return f"{field}: {_shown(problem['input'])} will not do: {problem['msg']}."


def _length(problem: ErrorDetails) -> str:
    given = problem["input"]
    return f"{len(given):,} ({_shown(given)})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def labels_of(given: str | Iterable[str]) -> list[str]:
    """Return labels as a list: of one text, that label."""
    return [given] if isinstance(given, str) else list(given)


def delete(source: Source, experiment_id: int, *, yes: bool) -> None:
    """Show what the deletion of an experiment frees, ask unless `yes`, and delete it.

    Raises
    ------
    RequestError
        If something stands in the way.
    ArgumentError
        If nobody can be asked.
    """
    if not yes:
        freed = source.deletion(experiment_id)
        if freed.obstacles:
            raise RequestError(409, freed.obstacles[0])
        print(deletion_text(freed))
        try:
            answer = input(f"Delete experiment {experiment_id}? [y/N] ")
        except (EOFError, RuntimeError):  # no standard input; a kernel whose front end cannot ask
            raise ArgumentError(
                f"Experiment {experiment_id} is not deleted, since nobody can be asked here: delete(yes=True) does not "
                "ask."
            ) from None
        if answer.strip().lower() not in ("y", "yes"):
            print(f"Experiment {experiment_id} stays.")
            return
    print(deleted_text(source.delete(experiment_id)))


def deletion_text(freed: Deletion) -> str:
    """Return what a deletion frees, in words."""
    parts = [
        _counted(freed.trials, "trial"),
        f"{_counted(freed.checkpoints, 'checkpoint')} ({shown_size(freed.checkpoint_bytes)})",
        f"{_counted(freed.blobs, 'stored file')} of its program and its outputs that nothing else needs "
        f"({shown_size(freed.blob_bytes)})",
        f"event files ({shown_size(freed.event_file_bytes)})" if freed.event_file_bytes else "",
        f"folders of its runs ({shown_size(freed.output_bytes)})" if freed.output_bytes else "",
        _counted(freed.artifacts, "written file") if freed.artifacts else "",
        _counted(freed.media, "logged picture, table or text", "logged pictures, tables and texts")
        if freed.media
        else "",
        _counted(freed.log_lines, "line of output", "lines of output") if freed.log_lines else "",
    ]
    name = f" ({freed.name})" if freed.name and freed.name != f"Experiment {freed.experiment_id}" else ""
    listed = "\n".join(f"  {part}" for part in parts if part)
    return f"Deleting experiment {freed.experiment_id}{name} frees {shown_size(freed.bytes)}, for good:\n{listed}"


def deleted_text(freed: Deletion) -> str:
    """Return that an experiment is deleted, and what that has freed, or will."""
    if freed.pending:
        return (
            f"Experiment {freed.experiment_id} is deleted; {freed.pending}. The master tries again every few minutes: "
            f"{shown_size(freed.bytes)} are free then."
        )
    return f"Experiment {freed.experiment_id} is deleted; {shown_size(freed.bytes)} are free."


def fork(
    source: Source,
    experiment_id: int,
    hyperparameters: Mapping[str, Any] | None,
    config: ConfigChanges,
    name: str | None,
) -> rest.Experiment:
    """Submit the program of an experiment with another configuration; see ``Experiment.fork``."""
    return source.fork(experiment_id, fork_body(hyperparameters, config, name))


def fork_body(hyperparameters: Mapping[str, Any] | None, config: ConfigChanges, name: str | None) -> ExperimentFork:
    """Return what is asked for by a fork, checked.

    Raises
    ------
    ArgumentError, ConfigurationError
        If it is nothing that a configuration can have.
    """
    if hyperparameters is not None and not isinstance(hyperparameters, Mapping):
        raise ArgumentError(f"hyperparameters must be values by name, such as {{'lr': 0.01}}, not {hyperparameters!r}.")
    reading = read(config)
    changes, problems = plain_mapping(reading.raw)
    values, wrong = plain_mapping(hyperparameters or {})
    found = [*reading.problems, *problems, *wrong]
    if found:
        raise ConfigurationError(f"The {reading.title} is not valid:", found)
    given: dict[str, Any] = {"config": changes, "hyperparameters": values}
    if name is not None:
        given["name"] = _named(name)
    return ExperimentFork.model_validate(given)


def continuation(
    source: Source,
    experiment_id: int,
    lengths: Mapping[str, int | None],
    checkpoint: str | None,
    trial: int | None,
    name: str | None,
) -> rest.Experiment:
    """Submit an experiment that goes on from a checkpoint of another one; see ``Experiment.continue_``.

    `trial` is the number of a trial inside the experiment, or its id on the master.

    Raises
    ------
    ArgumentError
        If not exactly one length is given, or it is no whole number above 0, or `trial` is none.
    NotFoundError
        If the experiment has no such trial.
    """
    given = {unit: length for unit, length in lengths.items() if length is not None}
    if len(given) != 1:
        raise ArgumentError("Say how much longer it trains by exactly one of epochs=, batches= and records=.")
    ((unit, length),) = given.items()
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise ArgumentError(f"{unit}={length!r}: a whole number above 0 is needed.")
    body: dict[str, Any] = {"unit": unit, "length": length}
    if checkpoint is not None:
        body["checkpoint"] = checkpoint
    if trial is not None:
        trials = source.trials(experiment_id)
        body["trial"] = trial_to_continue(trial, trials, owner=f"Experiment {experiment_id}").id
    if name is not None:
        body["name"] = _named(name)
    return source.continuation(experiment_id, ExperimentContinuation.model_validate(body))


def retain(source: Source, experiment_id: int, best: int, trial_best: int, trial_latest: int) -> Retained:
    """Change how many checkpoints of an experiment stay."""
    wanted = Retention(save_experiment_best=best, save_trial_best=trial_best, save_trial_latest=trial_latest)
    return source.retain(experiment_id, wanted)


def submitted_text(made: rest.Experiment) -> str:
    """Return that an experiment is submitted."""
    return f"Experiment {made.id}: {made.name} is submitted. experiment.wait() waits for its end."


def retained_text(experiment_id: int, retained: Retained) -> str:
    """Return what a change of how many checkpoints stay has freed."""
    freed = f"{_counted(retained.deleted, 'checkpoint')} deleted ({shown_size(retained.bytes)}), {retained.stay} stay"
    if retained.going_on:
        return f"Experiment {experiment_id} goes on; its checkpoints are kept so from now on."
    return f"Experiment {experiment_id}: {freed}."


def _named(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError(f"name={_shown(name)}: a text of more than spaces is needed.")
    name = name.strip()
    if len(name) > _LONGEST_NAME:
        raise ArgumentError(
            f"name: a text of at most {_LONGEST_NAME:,} characters is wanted, not {len(name):,} ({_shown(name)})."
        )
    return name


def _counted(number: int, what: str, several: str = "") -> str:
    return f"{number} {what if number == 1 else several or what + 's'}"
