"""An experiment as the command line describes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from det_native.client.short_forms import batches_of, format_value, whole_percent
from det_native.client.state_words import state_text, trial_notice, trial_word, waits_text
from det_native.client.tables import facts, plain, shown_table
from det_native.schema import rest
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import TrialState
from det_native.schema.trial_names import trial_name

MAX_TRIALS = 50
TRIALS_HEAD = ("trial", "state", "batches")


def description(experiment: rest.Experiment, trials: Sequence[rest.Trial]) -> str:
    """Return facts of an experiment and its trials, best first.

    Parameters
    ----------
    trials : sequence of rest.Trial
        What the user calls it; its number by default.
    """
    parts = [facts(experiment_facts(experiment))]
    notes = notes_text(experiment)
    if notes:
        parts.append(notes)
    if trials:
        ranked = trials_best_first(trials, smaller_is_better=experiment.smaller_is_better)
        parts.append(trials_table(ranked[:MAX_TRIALS], experiment))
    if len(trials) > MAX_TRIALS:
        parts.append(f"... and {len(trials) - MAX_TRIALS} more trials")
    return "\n\n".join(parts)


def experiment_facts(experiment: rest.Experiment) -> list[tuple[str, object]]:
    """Return what is said of an experiment, as names and values; see :func:`description`."""
    searcher = (experiment.config.get("searcher") or {}).get("name", "single")
    direction = "lower" if experiment.smaller_is_better else "higher"
    best = "none yet" if experiment.best_validation is None else format_value(experiment.best_validation)
    pairs: list[tuple[str, object]] = [
        ("experiment", f"{experiment.id}: {experiment.name}"),
        ("state", state_text(experiment)),
        ("progress", f"{whole_percent(experiment.progress)}%"),
        ("search", f"{searcher}, {experiment.trials} trial{'' if experiment.trials == 1 else 's'}"),
        (f"best {experiment.metric}", f"{best} ({direction} is better)"),
        *([("trains in", "a kernel")] if experiment.in_kernel else []),
        *_times(experiment),
        *written_facts(experiment),
    ]
    if experiment.error is not None:
        pairs.append(("error", _error(experiment.error)))
    return pairs


def written_facts(experiment: rest.Experiment) -> list[tuple[str, object]]:
    """Return what people have written of an experiment, and where it comes from; only what there is."""
    pairs: list[tuple[str, object]] = [
        ("labels", ", ".join(experiment.labels)),
        ("description", " ".join(experiment.description.split())),
        ("project", experiment.project),
        ("archived", "yes" if experiment.archived else ""),
        ("forked from", experiment.forked_from),
    ]
    return [(name, value) for name, value in pairs if value not in ("", None)]


def notes_text(experiment: rest.Experiment) -> str:
    """Return the notes of an experiment in full, below a heading; empty where there are none."""
    notes = experiment.notes if isinstance(experiment, rest.ExperimentDetail) else ""
    lines = [plain(line) for line in notes.strip().splitlines()]
    return "\n".join(["notes:", *(f"  {line}".rstrip() for line in lines)]) if lines else ""


def _error(error: rest.UserErrorInfo) -> str:
    return f"{error.type}: {' '.join(error.message.split())}"


def trial_description(trial: rest.Trial, experiment: rest.Experiment, checkpoints: Sequence[rest.Checkpoint]) -> str:
    """Return facts of a trial and its checkpoints."""
    pairs = trial_facts(trial, experiment)
    rows = [(each.uuid, each.batch, each.state.value, each.size) for each in checkpoints]
    parts = [facts(pairs), *([shown_table(("checkpoint", "batch", "state", "bytes"), rows)] if rows else [])]
    return "\n\n".join(parts)


def trial_facts(trial: rest.Trial, experiment: rest.Experiment) -> list[tuple[str, object]]:
    """Return what is said of a trial, as names and values; see :func:`trial_description`."""
    best = "none yet" if trial.best_validation is None else format_value(trial.best_validation)
    pairs: list[tuple[str, object]] = [
        ("trial", f"{trial.shown_number} of experiment {experiment.id}: {experiment.name}"),
        ("id", trial.id),
        ("state", _state(trial, experiment)),
        ("batches", f"{trial.batches} of {trial.target_batches}"),
        (f"best {experiment.metric}", best),
        ("hyperparameters", json.dumps(trial.hparams, sort_keys=True)),
        *_times(trial),
    ]
    if trial.error is not None:
        pairs.append(("error", _error(trial.error)))
    return pairs


def _state(trial: rest.Trial, experiment: rest.Experiment) -> str:
    waits = waits_text(experiment) if trial.state is TrialState.QUEUED else ""
    return ", ".join(filter(None, (trial_word(trial, experiment.state), waits, trial_notice(trial))))


def _times(experiment: rest.Experiment | rest.Trial) -> Iterable[tuple[str, object]]:
    known = (("created", experiment.created), ("started", experiment.started), ("ended", experiment.ended))
    return [(name, time) for name, time in known if time]


def trials_table(trials: Sequence[rest.Trial], experiment: rest.Experiment) -> str:
    """Return trials, one a line, by the names that commands take."""
    return shown_table((*TRIALS_HEAD, f"best {experiment.metric}", "hyperparameters"), trials_rows(trials, experiment))


def trials_rows(trials: Sequence[rest.Trial], experiment: rest.Experiment) -> list[tuple[object, ...]]:
    """Return the cells of that table."""
    return [
        (
            trial_name(experiment.id, trial.shown_number),
            ", ".join(filter(None, (trial_word(trial, experiment.state), trial_notice(trial)))),
            batches_of(trial),
            "" if trial.best_validation is None else format_value(trial.best_validation),
            json.dumps(trial.hparams, sort_keys=True),
        )
        for trial in trials
    ]
