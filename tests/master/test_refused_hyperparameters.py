"""A trial whose code says that its hyperparameters are invalid, on a master without processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, Worker, running_master

from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow  # a whole master for each test

SPACE = {"global_batch_size": 32, "rate": {"type": "double", "minval": 0.0, "maxval": 1.0}}
NOTICE = "invalid hyperparameters: the rate is too big"


def refuse(worker: Worker, batch: int = 0) -> None:
    error = {"type": "InvalidHP", "message": "the rate is\ntoo big", "traceback": "...", "batch": batch}
    worker.send({"type": "exit", "reason": ExitReason.INVALID_HYPERPARAMETERS, "batch": batch, "error": error})
    worker.master.launcher.end(worker.job.run_id, 1)


def shown(master: Master, experiment: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["state"], each["notice"]) for each in master.get(f"/experiments/{experiment['id']}/trials")]


def test_a_search_trains_another_one_instead_and_completes(master: Master) -> None:
    searcher = {"name": "random", "max_trials": 2, "max_concurrent_trials": 1}
    experiment = master.create({"searcher": searcher, "hyperparameters": SPACE})
    first = Worker(master, master.world.wait_for_jobs(1)[0])
    first.start()
    first.train(1, 50)
    first.validate(50, loss=0.01)
    refuse(first, batch=50)
    for number, loss in ((2, 0.5), (3, 0.4)):
        Worker(master, master.world.wait_for_jobs(number)[-1]).complete(loss=loss)
    ended = master.until_state(experiment["id"], "COMPLETED")
    assert shown(master, experiment) == [("CANCELED", NOTICE), ("COMPLETED", ""), ("COMPLETED", "")]
    assert (ended["failed_trials"], ended["best_validation"], ended["progress"]) == (0, 0.4, 1.0)
    assert master.get("/trials/1")["restarts"] == 0
    lines = [line["text"] for line in master.get("/trials/1/logs")]
    assert lines == [f"The trial ends: {NOTICE}."]


def test_a_single_trial_that_refuses_fails_its_experiment_and_says_why(master: Master) -> None:
    experiment = master.create()
    worker = Worker(master, master.world.wait_for_jobs(1)[0])
    worker.start()
    refuse(worker)
    ended = master.until_state(experiment["id"], "ERROR")
    assert ended["error"]["type"] == "InvalidHP"
    assert shown(master, experiment) == [("CANCELED", NOTICE)]


def test_the_next_master_knows_what_was_refused(tmp_path: Path) -> None:
    searcher = {"name": "random", "max_trials": 2, "max_concurrent_trials": 1}
    with running_master(tmp_path / "home") as master:
        experiment = master.create({"searcher": searcher, "hyperparameters": SPACE})
        worker = Worker(master, master.world.wait_for_jobs(1)[0])
        worker.start()
        refuse(worker)
        master.world.wait_for_jobs(2)
    with running_master(tmp_path / "home") as master:
        for number in (1, 2):
            Worker(master, master.world.wait_for_jobs(number)[-1]).complete()
        master.until_state(experiment["id"], "COMPLETED")
        assert [state for state, _ in shown(master, experiment)] == ["CANCELED", "COMPLETED", "COMPLETED"]
