"""The word for the state of an experiment or a trial, where more than the state itself tells it."""

from __future__ import annotations

from det_native.schema import rest
from det_native.schema.stage_words import STOPPED_EARLY
from det_native.schema.states import ExperimentState, TrialState


def shown_state(experiment: rest.Experiment) -> ExperimentState:
    """Return the state as it is shown: one that is active without slots, or has not got any yet, is queued."""
    if experiment.state is ExperimentState.ACTIVE and (not experiment.started or experiment.waits_for):
        return ExperimentState.QUEUED
    return experiment.state


def experiment_word(experiment: rest.Experiment) -> str:
    """Return the word for an experiment."""
    return shown_state(experiment).value


def waits_text(experiment: rest.Experiment) -> str:
    """Return what a queued experiment waits for: ``waits for 2 of 4 slots: #7 has them``; empty for one that is not."""
    return f"waits for {experiment.waits_for}" if experiment.waits_for else ""


def failed_trials_text(experiment: rest.Experiment) -> str:
    """Return that some trials of a completed search failed, in words; empty where none did."""
    if experiment.state is not ExperimentState.COMPLETED or not experiment.failed_trials:
        return ""
    return f"{experiment.failed_trials} of {experiment.trials} trials failed"


def state_text(experiment: rest.Experiment) -> str:
    """Return the word for an experiment, with what it waits for and how many trials failed."""
    words = (experiment_word(experiment), waits_text(experiment), experiment.notice, failed_trials_text(experiment))
    return ", ".join(filter(None, words))


def trial_word(trial: rest.Trial, experiment: ExperimentState | None = None) -> str:
    """Return the word for a trial; one that waits while its experiment (its state) is paused waits for no slot."""
    if trial.stopped_early:
        return "Stopped early"
    if trial.state is TrialState.QUEUED and experiment is ExperimentState.PAUSED:
        return experiment.value
    return trial.state.value


def trial_notice(trial: rest.Trial) -> str:
    """Return what is said after the word for a trial: of one that its search ended early only when that was."""
    if not trial.stopped_early:
        return trial.notice
    return trial.notice.removeprefix(f"{STOPPED_EARLY}, ").partition(":")[0]
