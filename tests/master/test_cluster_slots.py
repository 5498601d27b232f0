"""A cluster whose slots come and go: trials start on what there is, and wait for what there is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from master_parts import ClusterLauncher, Master, Worker, running_master

from det_native.client.state_words import state_text
from det_native.schema import rest
from det_native.schema.cluster import SlotsWanted
from det_native.schema.states import ExitReason

MACHINES = {"gpu-1": 2, "gpu-2": 4}
ACCELERATORS = {"gpu-1": "H100", "gpu-2": "A100"}


@pytest.fixture
def launcher() -> ClusterLauncher:
    return ClusterLauncher(MACHINES, ACCELERATORS)


@pytest.fixture
def master(tmp_path: Path, launcher: ClusterLauncher) -> Iterator[Master]:
    with running_master(tmp_path / "home", launcher=launcher) as running:
        yield running


def _create(master: Master, **resources: Any) -> int:
    return int(master.create({"resources": resources})["id"])


def _waits(master: Master, number: int, text: str) -> None:
    master.until(f"/experiments/{number}", lambda found: found["waits_for"] == text)


def test_a_trial_gets_the_slots_of_one_machine_and_its_job_says_what_they_are(
    master: Master, launcher: ClusterLauncher
) -> None:
    _create(master, slots_per_trial=2)
    [job] = launcher.world.wait_for_jobs(1)
    assert launcher.slots_of[job.run_id] == ("gpu-1/0", "gpu-1/1")
    assert (job.devices, job.threads) == ([], 0)  # the launcher fills them in
    assert launcher.world.ranks[job.run_id] == 2


def test_variables_of_the_environment_are_those_of_the_device_of_the_slots(master: Master) -> None:
    variables = {"cuda": ["A=gpu"], "cpu": ["A=cpu"]}
    master.create({"environment": {"environment_variables": variables}})
    [job] = master.world.wait_for_jobs(1)
    assert job.variables == {"A": "gpu"}


def test_slots_that_come_are_used_and_told(master: Master, launcher: ClusterLauncher) -> None:
    number = _create(master, slots_per_trial=8)
    _waits(master, number, "8 slots: the cluster has 6; Ray's autoscaler has been asked")
    launcher.wait_until_wanted([SlotsWanted(slots=8)])
    launcher.accelerators["gpu-3"] = "H100"
    launcher.set_machines({**MACHINES, "gpu-3": 8})
    [job] = launcher.world.wait_for_jobs(1)
    assert {slot.partition("/")[0] for slot in launcher.slots_of[job.run_id]} == {"gpu-3"}
    launcher.wait_until_wanted([])
    info = master.get("/master")
    assert len(info["slots"]) == 14
    assert [node["name"] for node in info["nodes"]] == ["gpu-1", "gpu-2", "gpu-3"]
    assert info["launcher"] == "ray"


def test_a_slot_that_is_gone_stays_with_its_trial_until_that_has_ended(
    master: Master, launcher: ClusterLauncher
) -> None:
    first = _create(master, node="gpu-1", slots_per_trial=2)
    [job] = launcher.world.wait_for_jobs(1)
    launcher.set_machines({"gpu-2": 4})
    slots = master.until("/master", lambda info: len(info["nodes"]) == 1)["slots"]
    held = {slot["id"]: slot["experiment_id"] for slot in slots}
    assert held == {**{f"gpu-2/{index}": None for index in range(4)}, "gpu-1/0": first, "gpu-1/1": first}
    assert master.get(f"/experiments/{first}")["state"] == "ACTIVE"
    Worker(master, job).complete()
    master.until_state(first, "COMPLETED")
    master.until("/master", lambda info: len(info["slots"]) == 4)


def test_a_machine_that_dies_is_waited_for(master: Master, launcher: ClusterLauncher) -> None:
    number = _create(master, accelerator="H100", slots_per_trial=2)
    [job] = launcher.world.wait_for_jobs(1)
    launcher.set_machines({"gpu-2": 4})
    launcher.end(job.run_id, None, "the machine gpu-1 is gone")
    _waits(master, number, "2 slots of H100: the cluster has none (see `det nodes`); Ray's autoscaler has been asked")
    launcher.wait_until_wanted([SlotsWanted(slots=2, accelerator="H100")])
    launcher.set_machines(MACHINES)
    launcher.world.wait_for_jobs(2)


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"accelerator": "B200"},
            "1 slot of B200: the cluster has none (see `det nodes`); Ray's autoscaler has been asked",
        ),
        (
            {"accelerator": "h100", "slots_per_trial": 4},
            "4 slots of h100: the cluster has 2; Ray's autoscaler has been asked",
        ),
        ({"node": "gpu-9"}, "1 slot on gpu-9: the cluster has none (see `det nodes`)"),
        (
            {"is_single_node": True, "slots_per_trial": 6},
            "6 slots on one machine: the largest has 4; Ray's autoscaler has been asked",
        ),
        (
            {"native_parallel": True, "slots_per_trial": 5},
            "5 slots on one machine: the largest has 4; Ray's autoscaler has been asked",
        ),
    ],
)
def test_what_the_cluster_does_not_have_is_waited_for(master: Master, resources: dict[str, Any], text: str) -> None:
    _waits(master, _create(master, **resources), text)


def test_an_empty_cluster_waits_for_machines(tmp_path: Path) -> None:
    launcher = ClusterLauncher({})
    with running_master(tmp_path / "home", launcher=launcher) as master:
        number = _create(master)
        _waits(master, number, "machines: the cluster has none; Ray's autoscaler has been asked")
        launcher.wait_until_wanted([SlotsWanted(slots=1)])
        launcher.set_machines({"cpu-1": 1})
        launcher.world.wait_for_jobs(1)
        _waits(master, number, "")


def test_trials_that_wait_for_their_turn_are_wanted_too(master: Master, launcher: ClusterLauncher) -> None:
    for _ in range(2):
        _create(master, slots_per_trial=6)
    launcher.wait_until_wanted([SlotsWanted(slots=6)])


def test_labels_choose_machines(tmp_path: Path) -> None:
    launcher = ClusterLauncher({})
    launcher.labels = {"b": {"zone": "north"}}
    launcher.set_machines({"a": 4, "b": 4})
    with running_master(tmp_path / "home", launcher=launcher) as master:
        _create(master, node="zone=north", slots_per_trial=3)
        [job] = launcher.world.wait_for_jobs(1)
        assert launcher.slots_of[job.run_id] == ("b/0", "b/1", "b/2")


def test_a_run_that_is_not_placed_yet_says_what_it_waits_for(master: Master, launcher: ClusterLauncher) -> None:
    number = _create(master)
    [job] = launcher.world.wait_for_jobs(1)
    launcher.unplaced = {job.run_id: "its placement group: another program has taken gpu-1/0"}
    _waits(master, number, "its placement group: another program has taken gpu-1/0")
    launcher.unplaced = {}
    _waits(master, number, "")


@pytest.mark.long
def test_trouble_of_the_cluster_is_told_starts_nothing_and_leaves_live_runs_alone(
    master: Master, launcher: ClusterLauncher
) -> None:
    first = _create(master)
    [job] = launcher.world.wait_for_jobs(1)
    launcher.problem = "The Ray cluster at 10.0.0.1:6379 does not answer."
    master.until("/master", lambda info: info["outage"] == launcher.problem)
    second = _create(master)
    _waits(master, second, "the cluster")
    assert [master.get(f"/experiments/{number}")["notice"] for number in (first, second)] == [launcher.problem] * 2
    shown = state_text(rest.Experiment.model_validate(master.get(f"/experiments/{second}")))
    assert shown == f"Queued, waits for the cluster, {launcher.problem}"
    assert launcher.killed == []
    assert len(launcher.world.jobs) == 1
    Worker(master, job).complete()
    master.until_state(first, "COMPLETED")
    launcher.problem = ""
    launcher.world.wait_for_jobs(2)
    assert master.get(f"/experiments/{second}")["notice"] == ""
    assert master.get("/master")["outage"] == ""


def test_who_asks_about_the_workers_python_hears_of_machines_in_trouble(
    master: Master, launcher: ClusterLauncher
) -> None:
    launcher.troubles = {"gpu-1": "Python is 3.9 there."}
    launcher.set_machines(MACHINES)
    master.until("/master", lambda info: info["nodes"][0]["trouble"] == "Python is 3.9 there.")
    answer = master.client.post("/api/v1/environment", json={"modules": []}).json()
    assert "No trial can run on the machine gpu-1: Python is 3.9 there." in answer["notices"]


def test_a_trial_that_has_completed_holds_no_slot_though_nobody_hears_that_its_processes_are_gone(
    master: Master, launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = _create(master, node="gpu-1", slots_per_trial=2)
    [job] = launcher.world.wait_for_jobs(1)
    monkeypatch.setattr(launcher, "kill", lambda run_id, *, grace=0.0: None)
    launcher.problem = "The Ray cluster at 10.0.0.1:6379 does not answer."
    launcher.set_machines(MACHINES)
    master.until("/master", lambda info: info["outage"] == launcher.problem)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 100)
    worker.validate(100, loss=0.5)
    worker.send({"type": "exit", "reason": ExitReason.COMPLETED, "batch": 100, "error": None, "early": False})
    master.until_state(number, "COMPLETED")
    master.until("/master", lambda info: {slot["experiment_id"] for slot in info["slots"]} == {None})
