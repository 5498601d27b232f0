"""Trials and experiments as the command line describes them."""

from __future__ import annotations

from det_native.client.describing import trial_description
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState

TIME = "2026-01-01T00:00:00.000Z"


def described(state: TrialState) -> list[str]:
    trial = rest.Trial(
        id=3, experiment_id=2, state=state, hparams={}, seed=1, restarts=0, run_id=None, batches=0, target_batches=10,
        best_validation=None, error=None, created=TIME, started=None, ended=None, slots=[],
    )  # fmt: skip
    experiment = rest.Experiment.model_construct(
        id=2, name="mine", state=ExperimentState.ACTIVE, metric="loss", waits_for="2 of 4 slots: #7 has them", notice=""
    )
    return trial_description(trial, experiment, []).splitlines()


def test_a_trial_that_is_queued_says_what_it_waits_for() -> None:
    assert "state            Queued, waits for 2 of 4 slots: #7 has them" in described(TrialState.QUEUED)
    assert "state            Running" in described(TrialState.RUNNING)
