"""Experiments and trials as calm text."""

from __future__ import annotations

from collections.abc import Sequence

from det_native.client.experiment_life import NOT_RECORDED
from det_native.client.handles import Experiment, Trial
from det_native.client.pareto import compared
from det_native.client.selection import best_trial
from det_native.client.short_forms import batches_of, format_value, trial_words, whole_percent
from det_native.client.state_words import (
    experiment_word,
    failed_trials_text,
    state_text,
    trial_notice,
    trial_word,
    waits_text,
)
from det_native.client.tables import plain
from det_native.display.failures import Failure, failures_of, headlines
from det_native.display.feed import outputs_trial
from det_native.display.hparams import format_hparams, hparam_texts
from det_native.display.outputs import output_facts
from det_native.schema import rest
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import ExperimentState, TrialState
from det_native.schema.time_left import about

MAX_ROWS = 12


def title_of(experiment_id: int, name: str) -> str:
    """Return number and name of an experiment; the number alone if the name says no more."""
    title, shown = f"Experiment {experiment_id or f'({NOT_RECORDED})'}", plain(name)
    return title if shown in ("", title) else f"{title}: {shown}"


def experiment_facts(detail: rest.ExperimentDetail) -> dict[str, str]:
    """Return what is said of an experiment, as label and value."""
    facts = {"state": state_text(detail)}
    if not detail.state.terminal:
        facts["progress"] = f"{whole_percent(detail.progress)}%"
    searcher = (detail.config.get("searcher") or {}).get("name", "single")
    facts["search"] = f"{searcher}, {detail.trials} trial{'s' if detail.trials != 1 else ''}"
    if detail.best_validation is not None:
        facts[f"best {detail.metric}"] = format_value(detail.best_validation)
    if (detail.config.get("resources") or {}).get("slots_per_trial") == 0:
        facts["slots"] = "none: it runs beside what has slots, without a GPU"
    names = [name for name, _ in compared(detail)]
    if len(names) > 1:
        facts["compared by"] = f"{', '.join(names[:-1])} and {names[-1]} (best_trials is their Pareto front)"
    return facts


def experiment_state(handle: Trial, trial: rest.Trial) -> ExperimentState | None:
    """Return the state of a trial's experiment where that says how the trial waits; it is not asked for elsewhere."""
    if trial.state is not TrialState.QUEUED:
        return None
    return handle.source.experiment(trial.experiment_id).state


def trial_state(trial: rest.Trial, experiment: ExperimentState | None = None, *, slots: bool = False) -> str:
    """Return the state of a trial with what the word alone would hide: ``Failed, on 2 slots, 1 restart``."""
    words = [trial_word(trial, experiment)]
    if slots and len(trial.slots) > 1:
        words.append(f"on {len(trial.slots)} slots")
    if trial.restarts:
        words.append(f"{trial.restarts} restart{'s' if trial.restarts > 1 else ''}")
    words += filter(None, [trial_notice(trial)])
    return ", ".join(words)


def best_id(trials: Sequence[rest.Trial], detail: rest.ExperimentDetail) -> int | None:
    """Return the trial with the best validation; None while none has been validated."""
    validated = [trial for trial in trials if trial.best_validation is not None]
    best = best_trial(validated, smaller_is_better=detail.smaller_is_better)
    return None if best is None else best.id


def trial_facts(
    trial: rest.Trial, metric: str, hparams: str | None = None, state: ExperimentState | None = None
) -> dict[str, str]:
    """Return what is said of a trial, as label and value.

    Parameters
    ----------
    metric : str
        The searcher's.
    hparams : str, optional
        Its hyperparameters in words; all of them by default.
    state : ExperimentState, optional
        That of its experiment.
    """
    hparams = format_hparams(trial.hparams) if hparams is None else hparams
    facts = {"state": trial_state(trial, state), "batches": batches_of(trial)}
    if len(trial.slots) > 1:
        facts["slots"] = ", ".join(trial.slots)
    if hparams:
        facts["hyperparameters"] = hparams
    if trial.best_validation is not None:
        facts[f"best {metric or 'validation'}"] = format_value(trial.best_validation)
    return facts


def experiment_line(
    experiment_id: int, detail: rest.ExperimentDetail, note: str = "", failures: Sequence[Failure] = ()
) -> str:
    """Return an experiment in one line.

    Parameters
    ----------
    note : str
        Said in brackets, such as the time for which it is told.
    failures : sequence of Failure
        What made trials fail: the first one is told where the experiment itself has no error.
    """
    words = [experiment_word(detail).lower(), *filter(None, [waits_text(detail), detail.notice])]
    if not detail.state.terminal:
        words.append(f"{whole_percent(detail.progress)}% done")
        words += [f"{about(detail.seconds_left)} left"] if detail.seconds_left is not None else []
    if detail.trials > 1:
        words.append(failed_trials_text(detail) or f"{detail.trials} trials")
    if detail.best_validation is not None:
        words.append(f"best {detail.metric or 'validation'} {format_value(detail.best_validation)}")
    if detail.error is None:
        words += [f"{headline[0].lower()}{headline[1:]}" for headline in headlines(failures)[:1]]
    return _line(title_of(experiment_id, detail.name), words, detail.error, note)


def trial_line(
    trial: rest.Trial, experiment_id: int, metric: str, note: str = "", state: ExperimentState | None = None
) -> str:
    """Return a trial in one line; see ``experiment_line``. `state` is that of the experiment."""
    words = trial_words(trial, metric, experiment=state)
    return _line(f"Trial {trial.shown_number} of experiment {experiment_id}", words, trial.error, note)


def _line(title: str, words: list[str], error: rest.UserErrorInfo | None, note: str) -> str:
    if error is not None:
        where = f" in cell [{error.cell}]" if error.cell is not None else ""
        words = [*words, f"{error.type}{where}: {error.message.splitlines()[0] if error.message else ''}".rstrip(": ")]
    line = f"{title}: {', '.join(words)}{f' ({note})' if note else ''}"
    return " ".join(line.split())


def experiment_text(experiment: Experiment) -> str:
    """Return an experiment as text: what it is, and a line for each trial."""
    detail = experiment.detail()
    lines = [title_of(experiment.id, detail.name)]
    lines += [f"  {label}: {value}" for label, value in experiment_facts(detail).items()]
    trials = experiment.source.trials(experiment.id)
    trial = outputs_trial(trials, smaller_is_better=detail.smaller_is_better)
    outputs = output_facts(experiment.source, trial, several=len(trials) > 1)
    lines += [f"  {label}: {value}" for label, value in outputs.items()]
    hparams = hparam_texts(trials)
    lines += [f"  in all trials: {hparams.common}"] if hparams.common else []
    best = best_id(trials, detail) if len(trials) > 1 else None
    for trial in trials_best_first(trials, smaller_is_better=detail.smaller_is_better)[:MAX_ROWS]:
        facts = trial_facts(trial, detail.metric, hparams.own[trial.id])
        said = ", ".join(f"{label} {value}" for label, value in facts.items() if label != "state")
        marked = " (best)" if trial.id == best else ""
        lines.append(f"  trial {trial.shown_number}{marked}: {trial_state(trial, detail.state)}, {said}")
    if len(trials) > MAX_ROWS:
        lines.append(f"  ... and {len(trials) - MAX_ROWS} more trials")
    return "\n".join([*lines, *_failure_lines(failures_of(trials, detail))])


def trial_text(trial: Trial) -> str:
    """Return a trial as text."""
    detail = trial.detail()
    lines = [f"Trial {detail.shown_number} of experiment {detail.experiment_id}"]
    facts = trial_facts(detail, trial.metric, state=experiment_state(trial, detail))
    facts |= output_facts(trial.source, detail)
    lines += [f"  {label}: {value}" for label, value in facts.items()]
    return "\n".join([*lines, *_failure_lines(failures_of([detail]))])


def _failure_lines(failures: Sequence[Failure]) -> list[str]:
    """Say what failed, with the traceback of the first one."""
    lines = headlines(failures)
    return [*lines[:1], *(failure.traceback for failure in failures[:1] if failure.traceback), *lines[1:]]
