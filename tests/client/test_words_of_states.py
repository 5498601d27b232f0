"""The words for states, on the command line and in handles alike."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.client.state_words import failed_trials_text, state_text, trial_notice, trial_word
from det_native.schema import rest
from det_native.schema.lengths import Length
from det_native.schema.stage_words import stopped_early
from det_native.schema.states import ExperimentState, TrialState


def experiment(state: ExperimentState, **facts: Any) -> rest.Experiment:
    known = {"started": "2026-01-01T00:00:00.000Z", "waits_for": "", "notice": "", "failed_trials": 0, "trials": 4}
    return rest.Experiment.model_construct(state=state, **(known | facts))


def trial(state: TrialState, **facts: Any) -> rest.Trial:
    return rest.Trial.model_construct(state=state, **({"stopped_early": False, "notice": ""} | facts))


@pytest.mark.parametrize(
    ("state", "facts", "text"),
    [
        (ExperimentState.ACTIVE, {}, "Running"),
        (ExperimentState.ACTIVE, {"started": None}, "Queued"),
        (ExperimentState.ACTIVE, {"waits_for": "2 of 4 slots"}, "Queued, waits for 2 of 4 slots"),
        (ExperimentState.ACTIVE, {"started": None, "waits_for": "a machine"}, "Queued, waits for a machine"),
        (ExperimentState.PAUSED, {"started": None}, "Paused"),
        (ExperimentState.COMPLETED, {}, "Completed"),
        (ExperimentState.COMPLETED, {"failed_trials": 1}, "Completed, 1 of 4 trials failed"),
        (
            ExperimentState.COMPLETED,
            {"notice": "stopped early", "failed_trials": 1},
            "Completed, stopped early, 1 of 4 trials failed",
        ),
        (ExperimentState.ACTIVE, {"failed_trials": 1}, "Running"),
        (ExperimentState.ERROR, {"failed_trials": 4}, "Failed"),
    ],
)
def test_an_experiment(state: ExperimentState, facts: dict[str, Any], text: str) -> None:
    assert state_text(experiment(state, **facts)) == text


def test_failed_trials_are_told_of_a_completed_search_only() -> None:
    assert failed_trials_text(experiment(ExperimentState.COMPLETED, failed_trials=2)) == "2 of 4 trials failed"
    assert failed_trials_text(experiment(ExperimentState.COMPLETED)) == ""
    assert failed_trials_text(experiment(ExperimentState.ACTIVE, failed_trials=2)) == ""


@pytest.mark.parametrize("state", TrialState)
def test_a_trial_that_its_search_ended_is_stopped_early_whatever_its_state(state: TrialState) -> None:
    assert trial_word(trial(state, stopped_early=True), ExperimentState.PAUSED) == "Stopped early"


def test_a_queued_trial_of_a_paused_experiment_is_paused() -> None:
    assert trial_word(trial(TrialState.QUEUED), ExperimentState.PAUSED) == "Paused"
    assert trial_word(trial(TrialState.QUEUED), ExperimentState.ACTIVE) == "Queued"
    assert trial_word(trial(TrialState.QUEUED)) == "Queued"
    assert trial_word(trial(TrialState.RUNNING), ExperimentState.PAUSED) == "Running"


def test_of_an_early_end_the_notice_says_only_when_it_was() -> None:
    reason = stopped_early(Length.model_validate({"batches": 1000}))
    assert trial_notice(trial(TrialState.COMPLETED, notice="slow: 3 batches/s")) == "slow: 3 batches/s"
    assert trial_notice(trial(TrialState.COMPLETED, stopped_early=True, notice=reason)) == "after 1,000 batches"
