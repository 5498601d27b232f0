"""Trials make room for those of a higher priority: they save their state, wait, and no restart is counted."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master, Worker, running_master

from det_native.client.command import cli
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import ArgumentError, RequestError
from det_native.master.scheduling.facts import Policy
from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow  # a whole master for each test

SEARCH = {"searcher": {"name": "random", "max_trials": 2}}


def working(master: Master, number: int) -> Worker:
    worker = Worker(master, master.world.wait_for_jobs(number)[number - 1])
    worker.start()
    return worker


def patch(master: Master, experiment: dict[str, Any], status: int = 200, **resources: Any) -> Any:
    path = f"/api/v1/experiments/{experiment['id']}"
    answer = master.client.patch(path, json={"resources": resources})
    assert answer.status_code == status, answer.text
    return answer.json()


def make_room(worker: Worker, batch: int) -> None:
    worker.master.until("/trials/" + str(worker.job.trial_id), lambda _: worker.send().stop)
    worker.checkpoint(batch)
    worker.exit(ExitReason.STOPPED, batch=batch)


def test_a_higher_priority_gets_the_slots_of_a_running_experiment(master: Master) -> None:
    low = master.create(SEARCH)
    first, second = working(master, 1), working(master, 2)
    high = master.create({"resources": {"slots_per_trial": 2, "priority": 1}})
    make_room(first, 5)
    path = f"/experiments/{high['id']}"
    told = master.until(path, lambda found: "saves" in found["waits_for"])["waits_for"]
    assert told == f"2 of 2 slots: #{low['id']} saves its state to make room"
    make_room(second, 7)
    third = working(master, 3)
    assert third.job.experiment_id == high["id"]
    waits = master.until(f"/experiments/{low['id']}", lambda found: found["waits_for"])["waits_for"]
    assert waits == f"1 of 2 slots: #{high['id']} has them"
    trials = master.get(f"/experiments/{low['id']}/trials")
    assert [(one["state"], one["restarts"]) for one in trials] == [("QUEUED", 0)] * 2
    third.complete()
    resumed = [job.resume.batch for job in master.world.wait_for_jobs(5)[3:] if job.resume]
    assert resumed == [5, 7]
    lines = [line["text"] for line in master.get(f"/trials/{first.job.trial_id}/logs")]
    assert any(f"experiment {high['id']} comes before it" in line for line in lines)
    assert "Paused after batch 5." in lines


def test_a_changed_priority_takes_effect_at_once(master: Master) -> None:
    master.create(SEARCH)
    first = working(master, 1)
    working(master, 2)
    high = master.create()
    master.until(f"/experiments/{high['id']}", lambda found: found["waits_for"])
    handle = Experiment(HttpSource(Session(str(master.client.base_url), master.token)), high["id"])
    handle.set_priority(1)
    assert handle.config["resources"]["priority"] == 1
    second = Worker(master, master.world.wait_for_jobs(2)[1])
    second.seq = 1
    make_room(second, 3)
    third = working(master, 3)
    assert third.job.experiment_id == high["id"]
    assert not first.send().stop
    third.complete()
    master.until_state(high["id"], "COMPLETED")
    with pytest.raises(RequestError, match=r"has ended .Completed.; it cannot be changed"):
        handle.set_priority(2)


def test_a_lower_limit_gives_slots_back_and_a_higher_one_takes_them_again(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 3}})
    first, second = working(master, 1), working(master, 2)
    patch(master, experiment, max_slots=1)
    make_room(second, 4)
    master.until("/trials/2", lambda trial: trial["state"] == "QUEUED")
    assert not first.send().stop
    assert "max_slots" in master.get("/trials/2/logs")[0]["text"]
    patch(master, experiment, max_slots=None)
    again = master.world.wait_for_jobs(3)[2]
    assert (again.trial_id, again.resume.batch if again.resume else None) == (2, 4)


def test_fair_share_does_not_look_at_priorities(tmp_path: Any) -> None:
    with running_master(tmp_path / "home", policy=Policy.FAIR_SHARE) as master:
        master.create({**SEARCH, "resources": {"priority": 1}})
        working(master, 1)
        second = working(master, 2)
        other = master.create({**SEARCH, "resources": {"priority": 99}})
        make_room(second, 2)
        assert working(master, 3).job.experiment_id == other["id"]


def test_logs_are_searched_from_the_shell(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    master.world.output[job.run_id] = "step 1\nWARNING: loss is nan\nERROR: nothing helps\n"
    Worker(master, job).complete()
    master.until_state(1, "COMPLETED")
    # The last of the output is read once the process has ended.
    master.until("/trials/1/logs", lambda lines: any("nothing helps" in line["text"] for line in lines))
    monkeypatch.setenv("DET_TOKEN", master.token)

    def det(*words: str) -> str:
        return CliRunner().invoke(cli, ["--master", str(master.client.base_url), *words]).output

    assert det("logs", "1", "--level", "warning") == "WARNING: loss is nan\nERROR: nothing helps\n"
    assert det("experiment", "logs", "1", "--grep", "n[ao]n") == "WARNING: loss is nan\n"
    assert det("trial", "logs", "1", "--level", "ERROR", "--times").endswith("Z ERROR: nothing helps\n")
    assert "'--level'" in det("logs", "1", "--level", "loud")


def test_what_cannot_be_changed_is_said(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = master.create({"resources": {"slots_per_trial": 2}})
    told = patch(master, experiment, 400, max_slots=1)["error"]
    assert told.startswith("max_slots: 1 is less than the 2 slots of each trial")
    assert "less than or equal to 99" in str(patch(master, experiment, 422, priority=100))
    handle = Experiment(HttpSource(Session(str(master.client.base_url), master.token)), experiment["id"])
    for value in (0, 100, 1.5, "high", None, True):
        with pytest.raises(ArgumentError, match=r"^priority: "):
            handle.set_priority(value)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^weight: "):
        handle.set_weight(0)
    monkeypatch.setenv("DET_TOKEN", master.token)
    command = ["--master", str(master.client.base_url), "experiment", "set"]
    number = str(experiment["id"])
    for words, expected in (
        (["priority", number, "7"], f"Experiment {number} has priority 7 now.\n"),
        (["weight", number, "2.5"], f"Experiment {number} has weight 2.5 now.\n"),
        (["max-slots", number, "2"], f"Experiment {number} has max_slots 2 now.\n"),
    ):
        assert CliRunner().invoke(cli, command + words).output == expected
    kept = master.get(f"/experiments/{number}")["config"]["resources"]
    assert (kept["priority"], kept["weight"], kept["max_slots"]) == (7, 2.5, 2)
    assert CliRunner().invoke(cli, [*command, "priority", number, "100"]).exit_code == 2
