"""One trial of a search compares what it is given with the notebook; the others end with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from master_parts import Master, MemoryLauncher, Worker, manifest, running_master

from det_native.schema.job import TrialJob
from det_native.schema.proof import CallProof
from det_native.schema.sampling import trial_seeds
from det_native.schema.states import ExitReason

SEARCH = {"searcher": {"name": "random", "max_trials": 4}, "reproducibility": {"experiment_seed": 3}, "max_restarts": 2}


def begun(master: Master) -> list[TrialJob]:
    """Submit a search of a program with a proof; return the jobs of its first two trials."""
    proof = CallProof(seed=next(trial_seeds(3)))
    bundle = manifest("torch").model_copy(update={"proof": proof})
    sent = master.client.post("/api/v1/bundles", json=bundle.model_dump(mode="json"))
    assert sent.status_code == 200, sent.text
    master.create(SEARCH, bundle_id=sent.json()["id"])
    return master.world.wait_for_jobs(2)


def differs(job: TrialJob, worker: Worker) -> None:
    error: dict[str, Any] = {"type": "InputDiffersError", "message": "x: other rows", "traceback": "", "batch": 0}
    worker.send({"type": "exit", "reason": ExitReason.USER_ERROR, "batch": 0, "error": error, "early": False})
    worker.master.launcher.end(job.run_id, 1)


def test_a_difference_ends_the_whole_search(tmp_path: Path) -> None:
    with running_master(tmp_path, slots=2) as master:
        first, _ = begun(master)
        differs(first, Worker(master, first))
        ended = master.until_state(1, "ERROR")
        assert ended["error"]["message"] == "x: other rows"
        states = [trial["state"] for trial in master.get("/experiments/1/trials")]
        assert (states[0], set(states[1:])) == ("ERROR", {"CANCELED"})
        logs = master.get("/trials/2/logs")
        assert any("trial 1.1 was given something else than the notebook" in line["text"] for line in logs)


def test_a_master_that_restarts_in_between_ends_it_too(tmp_path: Path) -> None:
    with running_master(tmp_path, slots=2) as master:
        first, _ = begun(master)
        master.service._experiments.fail_by_proof = lambda *_: False
        master.service._experiments.trial_over = lambda *_: False
        differs(first, Worker(master, first))
        master.until("/trials/1", lambda trial: trial["state"] == "ERROR")
        world = master.world
    with running_master(tmp_path, slots=2, launcher=MemoryLauncher(world)) as master:
        master.until_state(1, "ERROR")
        states = [trial["state"] for trial in master.get("/experiments/1/trials")]
        assert (states[0], set(states[1:])) == ("ERROR", {"CANCELED"})
