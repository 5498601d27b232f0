"""Trials that a search ends early are told apart from those that had the whole length."""

from __future__ import annotations

from pathlib import Path

import pytest
from master_parts import Master, Worker, running_master

from det_native.client.state_words import trial_notice, trial_word
from det_native.schema import rest

pytestmark = pytest.mark.slow

HALVING = {
    "searcher": {"name": "sync_halving", "num_rungs": 2, "divisor": 2, "budget": {"batches": 300}},
    "hyperparameters": {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}},
    "reproducibility": {"experiment_seed": 3},
}


def shown(master: Master) -> list[tuple[str, str]]:
    trials = [rest.Trial.model_validate(trial) for trial in master.get("/experiments/1/trials")]
    return [(trial_word(trial), trial_notice(trial)) for trial in trials]


def test_a_trial_that_halving_does_not_train_on_is_stopped_early(tmp_path: Path) -> None:
    """Four trials train for 50 batches, and the better two of them to 100."""
    with running_master(tmp_path, slots=1) as master:
        master.create(HALVING)
        for number in range(1, 7):
            job = master.world.wait_for_jobs(number)[number - 1]
            trial = master.get(f"/trials/{job.trial_id}")
            worker = Worker(master, job)
            worker.start(trial["batches"])
            worker.train(trial["batches"] + 1, trial["target_batches"])
            worker.validate(trial["target_batches"], loss=float(job.hparams["x"]))
            worker.exit(batch=trial["target_batches"])
        master.until_state(1, "COMPLETED")
        assert sorted(shown(master)) == [("Completed", "")] * 2 + [("Stopped early", "after 50 batches")] * 2
