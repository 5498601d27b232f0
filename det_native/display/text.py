"""Experiments and trials as calm text."""

from __future__ import annotations

from det_native.client.handles import Experiment, Trial
from det_native.client.short_forms import format_value, trial_words
from det_native.client.state_words import experiment_word, failed_trials_text, trial_word
from det_native.display.hparams import format_hparams, hparam_texts
from det_native.schema import rest
from det_native.schema.cell_titles import cell_title

MAX_ROWS = 12


def title_of(experiment_id: int | str, name: str) -> str:
    """Return number and name of an experiment; the number alone if the name says no more."""
    title = f"Experiment {experiment_id}"
    return title if name in ("", title) else f"{title}: {name}"


def experiment_facts(detail: rest.ExperimentDetail) -> dict[str, str]:
    """Return what is said of an experiment, as label and value."""
    facts = {"state": ", ".join(filter(None, (experiment_word(detail), failed_trials_text(detail))))}
    if not detail.state.terminal:
        facts["progress"] = f"{detail.progress:.0%}"
    searcher = (detail.config.get("searcher") or {}).get("name", "single")
    facts["search"] = f"{searcher}, {detail.trials} trial{'s' if detail.trials != 1 else ''}"
    if detail.best_validation is not None:
        facts[f"best {detail.metric}"] = format_value(detail.best_validation)
    return facts


def trial_facts(trial: rest.Trial, metric: str, hparams: str | None = None) -> dict[str, str]:
    """Return what is said of a trial, as label and value.

    Parameters
    ----------
    trial : Trial
    metric : str
        The searcher's.
    hparams : str, optional
        Its hyperparameters in words; all of them by default.
    """
    hparams = format_hparams(trial.hparams) if hparams is None else hparams
    facts = {"state": trial_word(trial), "batches": f"{trial.batches}/{trial.target_batches}"}
    if len(trial.slots) > 1:
        facts["slots"] = ", ".join(trial.slots)
    if hparams:
        facts["hyperparameters"] = hparams
    if trial.best_validation is not None:
        facts[f"best {metric or 'validation'}"] = format_value(trial.best_validation)
    if trial.restarts:
        facts["restarts"] = str(trial.restarts)
    return facts


def format_seconds(seconds: float) -> str:
    """Return a length of time as ``12 s``, ``4:05`` or ``1:02:03``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def experiment_line(experiment_id: int | str, detail: rest.ExperimentDetail, note: str = "") -> str:
    """Return an experiment in one line.

    Parameters
    ----------
    experiment_id : int or str
        As the user knows it: ``3``, or ``local-3``.
    detail : ExperimentDetail
    note : str
        Said in brackets, such as the time for which it is told.
    """
    words = [experiment_word(detail).lower()]
    if not detail.state.terminal:
        words.append(f"{detail.progress:.0%} done")
        words += [f"about {format_seconds(detail.seconds_left)} left"] if detail.seconds_left is not None else []
    if detail.trials > 1:
        words.append(failed_trials_text(detail) or f"{detail.trials} trials")
    if detail.best_validation is not None:
        words.append(f"best {detail.metric or 'validation'} {format_value(detail.best_validation)}")
    return _line(title_of(experiment_id, detail.name), words, detail.error, note)


def trial_line(trial: rest.Trial, experiment_id: int | str, metric: str, note: str = "") -> str:
    """Return a trial in one line; see ``experiment_line``."""
    return _line(f"Trial {trial.id} of experiment {experiment_id}", trial_words(trial, metric), trial.error, note)


def _line(title: str, words: list[str], error: rest.UserErrorInfo | None, note: str) -> str:
    if error is not None:
        where = f" in {cell_title(error.cell, prompts=error.prompts)}" if error.cell is not None else ""
        words = [*words, f"{error.type}{where}: {error.message.splitlines()[0] if error.message else ''}".rstrip(": ")]
    line = f"{title}: {', '.join(words)}{f' ({note})' if note else ''}"
    return " ".join(line.split())


def shown_trials(trials: list[Trial]) -> tuple[list[rest.Trial], int]:
    """Return the first trials, and how many more there are."""
    details = [trial.detail() for trial in trials[:MAX_ROWS]]
    return details, len(trials) - len(details)


def experiment_text(experiment: Experiment) -> str:
    """Return an experiment as text: what it is, and a line for each trial."""
    detail = experiment.detail()
    lines = [title_of(experiment.id, detail.name)]
    lines += [f"  {label}: {value}" for label, value in experiment_facts(detail).items()]
    handles = experiment.trials
    hparams = hparam_texts(handles)
    lines += [f"  in all trials: {hparams.common}"] if hparams.common else []
    trials, more = shown_trials(handles)
    for trial in trials:
        facts = trial_facts(trial, detail.metric, hparams.own[trial.id])
        said = ", ".join(f"{label} {value}" for label, value in facts.items() if label != "state")
        lines.append(f"  trial {trial.id}: {trial_word(trial)}, {said}")
    if more:
        lines.append(f"  ... and {more} more trials")
    if detail.error is not None:
        lines.append(detail.error.traceback or f"{detail.error.type}: {detail.error.message}")
    return "\n".join(lines)


def trial_text(trial: Trial) -> str:
    """Return a trial as text."""
    detail = trial.detail()
    lines = [f"Trial {detail.id} of experiment {trial.source.shown_id(detail.experiment_id)}"]
    lines += [f"  {label}: {value}" for label, value in trial_facts(detail, trial.metric).items()]
    if detail.error is not None:
        lines.append(detail.error.traceback or f"{detail.error.type}: {detail.error.message}")
    return "\n".join(lines)
