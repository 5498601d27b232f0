"""Pausing, resuming and stopping: workers are asked to end, trials wait and go on, and no restart is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from master_parts import Master, MemoryLauncher, Worker, publish, running_master

from det_native.client.command import cli
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import ArgumentError, RequestError
from det_native.schema.job import TrialJob
from det_native.schema.states import ExitReason, ExperimentState

pytestmark = pytest.mark.slow  # a whole master for each test


def ask(master: Master, experiment: dict[str, Any], what: str, status: int = 200) -> dict[str, Any]:
    answer = master.client.post(f"/api/v1/experiments/{experiment['id']}/{what}")
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


def begin(master: Master, **config: Any) -> tuple[dict[str, Any], Worker]:
    experiment = master.create(config)
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    return experiment, worker


def stopped(worker: Worker, batch: int) -> None:
    """Do what a worker does that is told to stop."""
    worker.checkpoint(batch)
    worker.exit(ExitReason.STOPPED, batch=batch)


def until_trial(master: Master, state: str, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = master.until(f"/trials/{number}", lambda trial: trial["state"] == state)
    return found


def nth_job(master: Master, number: int) -> TrialJob:
    return master.world.wait_for_jobs(number)[number - 1]


def test_a_paused_trial_waits_and_continues_from_its_checkpoint(master: Master) -> None:
    experiment, worker = begin(master)
    assert not worker.train(1, 10).stop
    assert ask(master, experiment, "pause")["state"] == "PAUSED"
    assert worker.train(11, 12).stop
    assert master.get("/trials/1")["state"] == "RUNNING"
    stopped(worker, 12)
    assert until_trial(master, "QUEUED")["restarts"] == 0
    master.until("/master", lambda found: all(slot["trial_id"] is None for slot in found["slots"]))
    assert len(master.world.jobs) == 1
    assert ask(master, experiment, "resume")["state"] == "ACTIVE"
    again = nth_job(master, 2)
    assert again.resume is not None
    assert again.resume.batch == 12
    resumed = Worker(master, again)
    assert not resumed.start(12).stop
    resumed.train(13, 100)
    resumed.validate(100, loss=0.5)
    resumed.exit(batch=100)
    assert master.until_state(experiment["id"], "COMPLETED")["error"] is None
    assert [row["batch"] for row in master.get("/trials/1/metrics")] == list(range(1, 101))
    lines = [line["text"] for line in master.get("/trials/1/logs")]
    assert lines[0] == "Paused after batch 12."
    assert lines[1].startswith("Attempt 2 continues from checkpoint")
    assert master.get("/trials/1")["restarts"] == 0


def test_pause_and_activate_may_be_repeated(master: Master) -> None:
    experiment, worker = begin(master)
    assert ask(master, experiment, "resume")["state"] == "ACTIVE"
    for _ in range(2):
        assert ask(master, experiment, "pause")["state"] == "PAUSED"
    stopped(worker, 3)
    until_trial(master, "QUEUED")
    for _ in range(2):
        assert ask(master, experiment, "resume")["state"] == "ACTIVE"
    assert nth_job(master, 2).resume is not None
    types = [event["data"]["state"] for event in events(master) if event["type"] == "experiment"]
    assert [state for before, state in zip(["", *types], types, strict=False) if state != before] == [
        "ACTIVE",
        "PAUSED",
        "ACTIVE",
    ]


def events(master: Master) -> list[dict[str, Any]]:
    from det_native.master.store import events as stored

    with master.service.database.read() as connection:
        return [event.model_dump(mode="json") for event in stored.after(connection, "user", 0)]


def test_a_worker_that_was_asked_is_held_to_it_after_an_early_activation(master: Master) -> None:
    experiment, worker = begin(master, max_restarts=0)
    ask(master, experiment, "pause")
    ask(master, experiment, "resume")
    assert worker.train(1, 2).stop
    assert worker.send().stop
    assert len(master.world.jobs) == 1
    stopped(worker, 2)
    again = Worker(master, nth_job(master, 2))
    assert not again.start(2).stop
    assert master.get("/trials/1")["restarts"] == 0


def test_nothing_starts_while_paused(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 4}})
    first, second = (Worker(master, job) for job in master.world.wait_for_jobs(2))
    ask(master, experiment, "pause")
    first.complete()
    second.start()
    stopped(second, 5)
    master.until("/master", lambda found: all(slot["trial_id"] is None for slot in found["slots"]))
    path = f"/experiments/{experiment['id']}/trials"
    assert [trial["state"] for trial in master.get(path)] == ["COMPLETED", "QUEUED", "QUEUED", "QUEUED"]
    other = master.create()
    assert nth_job(master, 3).experiment_id == other["id"]
    ask(master, experiment, "resume")
    assert nth_job(master, 4).trial_id == second.job.trial_id


def test_a_trial_that_ends_by_itself_while_paused_ends_the_experiment(master: Master) -> None:
    experiment, worker = begin(master)
    ask(master, experiment, "pause")
    worker.train(1, 100)
    worker.validate(100, loss=0.5)
    worker.exit(batch=100)
    assert master.until_state(experiment["id"], "COMPLETED")["best_validation"] == 0.5
    told = ask(master, experiment, "pause", 409)["error"]
    assert told == f"Experiment {experiment['id']} has ended (Completed); it cannot be paused."
    assert "cannot be resumed" in ask(master, experiment, "resume", 409)["error"]
    ask(master, {"id": 99}, "pause", 404)


def test_an_error_while_paused_counts_as_one(master: Master) -> None:
    experiment, worker = begin(master)
    ask(master, experiment, "pause")
    worker.exit(ExitReason.USER_ERROR, batch=3, message="boom")
    assert until_trial(master, "QUEUED")["restarts"] == 1
    assert len(master.world.jobs) == 1
    ask(master, experiment, "resume")
    assert nth_job(master, 2).resume is None


@pytest.mark.parametrize("gone", [True, False], ids=["its worker is gone", "its worker ends"])
def test_a_paused_experiment_can_be_killed(master: Master, gone: bool) -> None:
    experiment, worker = begin(master)
    ask(master, experiment, "pause")
    if gone:
        stopped(worker, 5)
        until_trial(master, "QUEUED")
    assert ask(master, experiment, "kill")["state"] in ("STOPPING_CANCELED", "CANCELED")
    assert master.until_state(experiment["id"], "CANCELED")["ended"]
    assert master.get("/trials/1")["state"] == "CANCELED"


def test_an_experiment_that_is_being_killed_cannot_be_paused(master: Master) -> None:
    master.launcher.exit_on_kill = False
    experiment, worker = begin(master)
    assert ask(master, experiment, "kill")["state"] == "STOPPING_CANCELED"
    assert "is ending (Stopping)" in ask(master, experiment, "pause", 409)["error"]
    master.launcher.end(worker.job.run_id, -15)
    master.until_state(experiment["id"], "CANCELED")


def test_a_worker_that_does_not_end_is_killed_and_its_last_checkpoint_counts(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, worker = begin(master, max_restarts=0)
    worker.checkpoint(30)
    worker.train(1, 40)
    monkeypatch.setattr("det_native.master.flow.runs.PAUSE_GRACE_SECONDS", 0.0)
    ask(master, experiment, "pause")
    assert until_trial(master, "QUEUED")["restarts"] == 0
    assert master.launcher.killed == [(worker.job.run_id, 0.0)]
    ask(master, experiment, "resume")
    again = nth_job(master, 2)
    assert again.resume is not None
    assert again.resume.batch == 30
    assert "the one before counts" in master.get("/trials/1/logs")[0]["text"]


@pytest.mark.long
def test_a_restarted_master_keeps_the_pause(tmp_path: Path) -> None:
    config = {"searcher": {"name": "random", "max_trials": 3}, "max_restarts": 0}
    with running_master(tmp_path / "home") as first:
        experiment = first.create(config)
        jobs = first.world.wait_for_jobs(2)
        for job in jobs:
            Worker(first, job).start()
        ask(first, experiment, "pause")
        _, report = publish(jobs[0], 7)
        speaking = Worker(first, jobs[0])
        speaking.seq = 1
        speaking.send(report)
        world = first.world
    world.alive.discard(jobs[0].run_id)  # it ended while no master was there
    with running_master(tmp_path / "home", launcher=MemoryLauncher(world)) as second:
        path = f"/experiments/{experiment['id']}"
        assert second.get(path)["state"] == "PAUSED"
        states = second.until(f"{path}/trials", lambda found: found[0]["state"] == "QUEUED")
        assert [(one["state"], one["restarts"]) for one in states] == [("QUEUED", 0), ("RUNNING", 0), ("QUEUED", 0)]
        living = Worker(second, jobs[1])
        living.seq = 1
        assert living.train(1, 1).stop
        stopped(living, 1)
        until_trial(second, "QUEUED", 2)
        assert len(world.jobs) == 2
        ask(second, experiment, "resume")
        third, fourth = world.wait_for_jobs(4)[2:]
        assert [job.resume.batch for job in (third, fourth) if job.resume] == [7, 1]


@pytest.mark.long
def test_handles_and_the_command_pause_too(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(master.client.base_url)
    experiment, worker = begin(master)
    handle = Experiment(HttpSource(Session(url, master.token)), experiment["id"])
    handle.pause()
    assert handle.state is ExperimentState.PAUSED
    stopped(worker, 4)
    until_trial(master, "QUEUED")
    monkeypatch.setenv("DET_TOKEN", master.token)

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--master", url, *words])

    number = str(experiment["id"])
    for group, verb, state, word in (
        ("experiment", "resume", "ACTIVE", "Running"),
        ("e", "pause", "PAUSED", "Paused"),
        ("exp", "activate", "ACTIVE", "Running"),
    ):
        told = command(group, verb, number)
        assert re.fullmatch(rf"Experiment {number} is ({word})\.\n", told.output), told
        master.until_state(experiment["id"], state)
    told = json.loads(command("e", "kill", number, "--json").output)
    assert (told["id"], told["state"]) in [(int(number), "CANCELED"), (int(number), "STOPPING_CANCELED")]
    master.until_state(experiment["id"], "CANCELED")
    for verb in ("kill", "stop", "cancel", "pause", "resume"):
        told = command("experiment", verb, number)
        assert isinstance(told.exception, ArgumentError), verb
        assert str(told.exception).startswith(f"Experiment {number} has ended: it is Stopped.")
    assert re.search(rf"^ *{number} .* Stopped ", command("e", "ls").output, re.MULTILINE)
    for state, count in (("stopped", 1), ("CANCELED", 1), ("Failed", 0)):
        assert command("exp", "list", "--state", state).output.count(" Stopped ") == count
        assert len(master.client.get("/api/v1/experiments", params={"state": state}).json()) == count
    assert "there are Queued, Running," in str(command("e", "list", "--state", "halted").exception)
    with pytest.raises(RequestError, match=r"has ended \(Stopped\); it cannot be resumed"):
        handle.activate()


@pytest.mark.long
def test_what_is_stopped_ends_with_a_checkpoint_and_for_good(master: Master) -> None:
    experiment, worker = begin(master)
    assert not worker.train(1, 10).stop
    assert ask(master, experiment, "stop")["state"] == "STOPPING_CANCELED"
    assert worker.train(11, 12).stop, "it is asked to write a checkpoint and end"
    stopped(worker, 12)
    assert master.until_state(experiment["id"], "CANCELED")["error"] is None
    assert [one["batch"] for one in master.get("/trials/1/checkpoints")] == [12]
    assert master.get("/trials/1")["state"] == "CANCELED"
    assert ask(master, experiment, "stop")["state"] == "CANCELED"
    assert len(master.world.jobs) == 1


@pytest.mark.long
def test_a_paused_experiment_is_stopped_at_once(master: Master) -> None:
    experiment, worker = begin(master)
    ask(master, experiment, "pause")
    stopped(worker, 4)
    until_trial(master, "QUEUED")
    assert ask(master, experiment, "stop")["state"] == "CANCELED"


@pytest.mark.long
def test_killing_what_is_being_stopped_ends_it_now(master: Master) -> None:
    experiment, worker = begin(master)
    worker.train(1, 2)
    assert ask(master, experiment, "stop")["state"] == "STOPPING_CANCELED"
    assert not master.launcher.killed
    ask(master, experiment, "kill")
    assert [run_id for run_id, _ in master.launcher.killed] == [worker.job.run_id]
    master.until_state(experiment["id"], "CANCELED")


@pytest.mark.long
def test_the_time_left_is_unknown_while_paused(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.schema.time_left.SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr("det_native.schema.time_left.LEAST_GAINS", 0)
    experiment, worker = begin(master)
    path = f"/experiments/{experiment['id']}"
    known = master.get(path)
    assert known["started"] is not None
    assert known["seconds_left"] is None
    worker.train(1, 10)
    master.until(path, lambda found: found["progress"] >= 0.1)
    worker.train(11, 30)
    master.until(path, lambda found: found["progress"] >= 0.3)
    worker.train(31, 50)
    assert master.until(path, lambda found: found["seconds_left"] is not None)["seconds_left"] > 0
    ask(master, experiment, "pause")
    assert master.get(path)["seconds_left"] is None
    assert master.get("/experiments")[0]["started"] == known["started"]
