"""Trials that begin with the weights of another one: what the master tells the worker, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, Worker, configuration

from det_native import PROTOCOL

pytestmark = pytest.mark.slow  # a whole master for each test

POPULATION = {
    "name": "pbt",
    "population_size": 2,
    "num_rounds": 2,
    "length_per_round": {"batches": 10},
    "replace_function": {"truncate_fraction": 0.5},
    "explore_function": {"resample_probability": 0.0, "perturb_factor": 0.5},
}


def trained(master: Master) -> str:
    """Train the first trial of a master to its end; return its checkpoint."""
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    uuid = complete(Worker(master, job), 100)
    master.until_state(experiment["id"], "COMPLETED")
    return uuid


def complete(worker: Worker, batches: int = 10, loss: float = 0.5, *, first: int = 1) -> str:
    worker.start()
    worker.train(first, batches - first + 1)
    uuid = worker.checkpoint(batches)
    worker.validate(batches, loss=loss)
    worker.exit(batch=batches)
    return uuid


def refused(master: Master, searcher: dict[str, Any]) -> str:
    searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 5}, **searcher}
    body = {"protocol": PROTOCOL, "config": configuration(searcher=searcher), "bundle_id": master.bundle()}
    response = master.client.post("/api/v1/experiments", json=body)
    assert response.status_code >= 400
    return str(response.json()["error"])


def test_a_population_replaces_its_worst_by_changed_copies_of_the_best(master: Master) -> None:
    space = {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}}
    experiment = master.create({"searcher": POPULATION, "hyperparameters": {"global_batch_size": 8, **space}})
    first, second = master.world.wait_for_jobs(2)
    assert (first.warm_start, second.warm_start) == (None, None)
    complete(Worker(master, first), loss=0.9)
    best = complete(Worker(master, second), loss=0.1)
    later = master.world.wait_for_jobs(4)[2:]
    copy, going_on = sorted(later, key=lambda job: job.trial_id, reverse=True)
    assert going_on.trial_id == second.trial_id
    assert going_on.resume is not None
    assert going_on.stage == {"batches": 20}
    assert copy.trial_id == 3
    assert (copy.resume, copy.stage) == (None, {"batches": 10})
    assert copy.warm_start is not None
    assert copy.warm_start.manifest.uuid == best
    assert copy.warm_start.checkpoints == second.checkpoints
    assert copy.hparams["rate"] in (
        pytest.approx(second.hparams["rate"] * 0.5),
        pytest.approx(min(second.hparams["rate"] * 1.5, 1.0)),
    )
    assert master.get("/trials/3")["warm_start"] == best
    lines = [line["text"] for line in master.get("/trials/3/logs") if line["stream"] == "system"]
    assert f"This trial begins with the weights of trial 1.2 after its batch 10 (checkpoint {best})." in lines
    complete(Worker(master, going_on), 20, loss=0.2, first=11)
    complete(Worker(master, copy), loss=0.05)
    ended = master.until_state(experiment["id"], "COMPLETED")
    assert ended["best_validation"] == 0.05
    assert [trial["batches"] for trial in master.get(f"/experiments/{experiment['id']}/trials")] == [10, 20, 10]


@pytest.mark.parametrize("field", ["source_trial_id", "source_checkpoint_uuid"])
def test_every_trial_begins_with_what_the_configuration_names(master: Master, field: str) -> None:
    uuid = trained(master)
    named = {field: 1 if field == "source_trial_id" else uuid}
    master.create({"searcher": {"name": "random", "max_trials": 2, **named}})
    for job in master.world.wait_for_jobs(3)[1:]:
        assert job.resume is None
        assert job.warm_start is not None
        assert job.warm_start.manifest.uuid == uuid


def test_a_restart_goes_on_from_the_trials_own_checkpoint(master: Master) -> None:
    uuid = trained(master)
    master.create({"searcher": {"name": "single", "source_checkpoint_uuid": uuid}})
    job = master.world.wait_for_jobs(2)[1]
    worker = Worker(master, job)
    worker.start()
    own = worker.checkpoint(20)
    master.launcher.end(job.run_id, -9)
    again = master.world.wait_for_jobs(3)[2]
    assert again.resume is not None
    assert again.resume.uuid == own


def test_what_no_trial_can_begin_with_is_refused_at_submit(master: Master) -> None:
    assert refused(master, {"source_checkpoint_uuid": "5c1e"}) == "There is no checkpoint 5c1e."
    assert refused(master, {"source_trial_id": 7}) == "There is no trial 7."
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    assert "searcher.source_trial_id: 1: that trial has no checkpoint to begin with" in refused(
        master, {"source_trial_id": 1}
    )
    Worker(master, job).exit(batch=0)


def test_a_source_that_has_lost_its_files_ends_the_trial_with_a_sentence(master: Master) -> None:
    uuid = trained(master)
    shutil.rmtree(Path(master.world.wait_for_jobs(1)[0].checkpoints) / uuid)
    experiment = master.create({"searcher": {"name": "single", "source_checkpoint_uuid": uuid}, "max_restarts": 0})
    ended = master.until_state(experiment["id"], "ERROR")
    assert uuid in ended["error"]["message"]
