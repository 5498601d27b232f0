"""The master's decisions, around a launcher without processes."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master, MemoryLauncher, Worker, configuration, manifest, publish, running_master

from det_native import PROTOCOL
from det_native.client.command import cli
from det_native.errors import MasterStartError
from det_native.master.app import build
from det_native.master.service import OWNER
from det_native.master.store import events
from det_native.master.store.encoding import now
from det_native.schema.job import TrialJob
from det_native.schema.manifests import FileEntry
from det_native.schema.sealed import seal
from det_native.schema.states import ExitReason
from det_native.storage.packing import pack

pytestmark = pytest.mark.slow  # a whole master for each test


def system_lines(master: Master, trial_id: int = 1) -> list[str]:
    return [line["text"] for line in master.get(f"/trials/{trial_id}/logs") if line["stream"] == "system"]


def test_a_single_trial_runs_to_its_end(master: Master) -> None:
    created = master.create(
        {"reproducibility": {"experiment_seed": 5}, "environment": {"environment_variables": ["A=b"]}}
    )
    assert created["state"] == "ACTIVE"
    (job,) = master.world.wait_for_jobs(1)
    assert (job.trial_id, job.experiment_id, job.gang) == (1, created["id"], None)
    assert (job.variables, job.devices, job.resume) == ({"A": "b"}, [], None)
    assert job.config["reproducibility"]["experiment_seed"] == 5
    worker = Worker(master, job)
    assert not worker.start().stop
    worker.train(1, 100)
    best = master.client.get(f"/api/v1/runs/{job.run_id}/best", headers={"Authorization": f"Bearer {job.token}"})
    assert best.json() == {"value": None}
    worker.validate(100, loss=0.25)
    worker.exit(batch=100)
    ended = master.until_state(created["id"], "COMPLETED")
    assert (ended["progress"], ended["best_validation"], ended["error"]) == (1.0, 0.25, None)
    trial = master.get("/trials/1")
    assert (trial["state"], trial["batches"], trial["target_batches"], trial["restarts"]) == ("COMPLETED", 100, 100, 0)
    assert trial["started"] <= trial["ended"]


def test_progress_is_told_while_trials_run(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 2}})
    first, _ = master.world.wait_for_jobs(2)
    worker = Worker(master, first)
    worker.start()
    worker.train(1, 50)
    found = master.until(f"/experiments/{experiment['id']}", lambda found: found["progress"] > 0)
    assert found["progress"] == 0.25


def test_an_experiment_that_was_killed_or_has_failed_keeps_how_far_it_came(master: Master) -> None:
    for number, end in enumerate(("kill", "fail")):
        experiment = master.create({"searcher": {"name": "random", "max_trials": 2}, "max_restarts": 0})
        jobs = master.world.wait_for_jobs(2 * number + 2)[-2:]
        workers = [Worker(master, job) for job in jobs]
        for worker, batches in zip(workers, (50, 30), strict=True):
            worker.start()
            worker.train(1, batches)
        if end == "kill":
            master.client.post(f"/api/v1/experiments/{experiment['id']}/kill")
        else:
            for worker in workers:
                worker.exit(ExitReason.USER_ERROR, batch=1, message="boom")
        ended = master.until_state(experiment["id"], "CANCELED" if end == "kill" else "ERROR")
        assert ended["progress"] == pytest.approx(0.4), end


def test_a_random_search_of_five_trials_on_two_slots(master: Master) -> None:
    searcher = {"name": "random", "max_trials": 5}
    hyperparameters = {"global_batch_size": 32, "rate": {"type": "double", "minval": 0.0, "maxval": 1.0}}
    experiment = master.create({"searcher": searcher, "hyperparameters": hyperparameters})
    master.world.wait_for_jobs(2)
    master.until("/master", lambda found: [slot["trial_id"] for slot in found["slots"]] == [1, 2])
    for done in range(5):
        job = master.world.wait_for_jobs(done + 1)[done]
        assert len(master.world.alive) <= 2
        Worker(master, job).complete(loss=1.0 - done / 10)
    ended = master.until_state(experiment["id"], "COMPLETED")
    trials = master.get(f"/experiments/{experiment['id']}/trials")
    assert [trial["state"] for trial in trials] == ["COMPLETED"] * 5
    assert len({trial["hparams"]["rate"] for trial in trials}) == 5
    assert len({trial["seed"] for trial in trials}) == 5
    assert ended["best_validation"] == pytest.approx(0.6)


def test_an_error_of_the_user_is_shown_at_once_retried_once_and_not_again(master: Master) -> None:
    experiment = master.create()
    for attempt in (1, 2):
        job = master.world.wait_for_jobs(attempt)[-1]
        worker = Worker(master, job)
        worker.start()
        worker.train(1, 7)
        worker.exit(ExitReason.USER_ERROR, batch=7, message="boom")
    ended = master.until_state(experiment["id"], "ERROR")
    assert ended["error"]["message"] == "boom"
    trial = master.get("/trials/1")
    assert (trial["state"], trial["restarts"], trial["error"]["batch"]) == ("ERROR", 1, 7)
    assert len(master.world.jobs) == 2
    assert any("same error came again at the same batch" in line for line in system_lines(master))


@pytest.mark.long
def test_an_error_that_moves_on_uses_up_the_restarts(master: Master) -> None:
    experiment = master.create({"max_restarts": 2})
    for attempt in (1, 2, 3):
        worker = Worker(master, master.world.wait_for_jobs(attempt)[-1])
        worker.start()
        worker.exit(ExitReason.USER_ERROR, batch=attempt, message="boom")
    master.until_state(experiment["id"], "ERROR")
    assert master.get("/trials/1")["restarts"] == 2
    assert any("no restarts left" in line for line in system_lines(master))


@pytest.mark.long
def test_a_killed_worker_continues_from_its_latest_checkpoint(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 60)
    worker.checkpoint(20)
    uuid = worker.checkpoint(40)
    master.launcher.end(job.run_id, -9, "killed by signal 9 (SIGKILL)")
    second = master.world.wait_for_jobs(2)[1]
    assert second.resume is not None
    assert (second.resume.uuid, second.resume.batch, second.token != job.token) == (uuid, 40, True)
    assert worker.post({"seq": 9, "type": "started", "batch": 0}).status_code == 409
    trial = master.get("/trials/1")
    assert (trial["restarts"], trial["batches"], trial["error"]["type"]) == (1, 40, "WorkerDied")
    assert [row["batch"] for row in master.get("/trials/1/metrics", kind="training")] == list(range(1, 41))
    assert any("SIGKILL" in line for line in system_lines(master))
    again = Worker(master, second)
    again.start(40)
    again.train(41, 100)
    again.validate(100, loss=0.1)
    again.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    assert master.get("/trials/1")["error"] is None
    assert len(master.get("/trials/1/metrics", kind="training")) == 100


@pytest.mark.long
def test_a_trial_knows_since_when_it_has_its_best_value(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    assert master.get("/trials/1")["best_at"] is None
    worker.validate(10, loss=0.5)
    first = master.get("/trials/1")["best_at"]
    while now() <= first:
        pass
    worker.validate(20, loss=0.6)
    assert master.get("/trials/1")["best_at"] == first
    worker.validate(30, loss=0.4)
    second = master.get("/trials/1")["best_at"]
    assert first < second <= now()
    worker.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    assert master.get("/trials/1")["best_at"] == second


@pytest.mark.long
def test_a_damaged_checkpoint_is_passed_over(master: Master) -> None:
    master.create({"checkpoint_storage": {"save_trial_latest": 9}})
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    good, cut, poisoned = worker.checkpoint(10), worker.checkpoint(20), worker.checkpoint(15)
    (Path(job.checkpoints) / cut / "weights").write_text("w")
    master.launcher.end(job.run_id, -9, "killed")
    second = master.world.wait_for_jobs(2)[1]
    assert second.resume is not None
    assert second.resume.uuid == poisoned
    error = {"type": "CheckpointCorruptError", "message": "weights", "traceback": ""}
    Worker(master, second).send({"type": "exit", "reason": "HARNESS_ERROR", "batch": 0, "error": error})
    master.launcher.end(second.run_id, 1)
    third = master.world.wait_for_jobs(3)[2]
    assert third.resume is not None
    assert third.resume.uuid == good


@pytest.mark.long
def test_how_long_a_trial_is_its_worker_knows_best(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start(length=132)
    assert master.get("/trials/1")["target_batches"] == 132
    worker.train(1, 66)
    worker.train(67, 90)
    worker.exit(batch=90, early=True)
    master.until_state(experiment["id"], "COMPLETED")
    trial = master.get("/trials/1")
    assert (trial["batches"], trial["target_batches"]) == (90, 90), "a loop that was left is done"


@pytest.mark.long
def test_reports_that_a_dead_worker_left_on_disk_are_taken(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    reports: list[dict[str, Any]] = [
        {"seq": 1, "type": "started", "batch": 0},
        {"seq": 2, "type": "metrics", "kind": "training", "batches": [1, 2], "metrics": {"loss": [1.0, 0.5]}},
        {"seq": 3, "type": "metrics", "kind": "validation", "batches": [2], "metrics": {"loss": [0.75]}},
    ]
    spool = Path(job.directory) / "spool"
    spool.mkdir()
    (spool / "000000000001.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports[:2]))
    (spool / "000000000003.jsonl").write_text(json.dumps(reports[2]) + '\n{"seq": 4, "type": "chec')
    exit_report = {"seq": 4, "type": "exit", "reason": "COMPLETED", "batch": 2}
    (Path(job.directory) / "exit.json").write_text(json.dumps(exit_report))
    master.launcher.end(job.run_id, 0)
    ended = master.until_state(experiment["id"], "COMPLETED")
    assert ended["best_validation"] == 0.75
    assert [row["batch"] for row in master.get("/trials/1/metrics", kind="training")] == [1, 2]


@pytest.mark.long
def test_reports_that_were_damaged_on_disk_are_not_taken_and_the_run_is_not_complete(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    spool = Path(job.directory) / "spool"
    spool.mkdir()
    rows = {"type": "metrics", "kind": "training", "batches": [1, 2], "metrics": {"loss": [1.0, 0.5]}}
    last = {"type": "metrics", "kind": "validation", "batches": [2], "metrics": {"loss": [0.75]}}
    lines = seal(json.dumps({"seq": 2, **rows})) + seal(json.dumps({"seq": 3, **last})).replace(b"0.75", b"0.25")
    (spool / "000000000002.jsonl").write_bytes(lines)
    exit_report = {"seq": 4, "type": "exit", "reason": "COMPLETED", "batch": 100, "last_row": 2}
    (Path(job.directory) / "exit.json").write_text(json.dumps(exit_report))
    master.launcher.end(job.run_id, 0)
    _, again = master.world.wait_for_jobs(2)
    trial = master.get(f"/trials/{job.trial_id}")
    assert (trial["restarts"], trial["best_validation"]) == (1, None)
    said = [line["text"] for line in master.get(f"/trials/{job.trial_id}/logs")]
    assert any(f"{spool}/000000000002.jsonl is damaged: what the worker could not send" in line for line in said), said
    assert any("of its 4 reports 2 are here" in line for line in said), said
    Worker(master, again).complete()
    master.until_state(experiment["id"], "COMPLETED")


def test_a_run_ends_whose_left_reports_no_database_can_store(master: Master) -> None:
    master.create({"max_restarts": 0})
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    spool = Path(job.directory) / "spool"
    spool.mkdir()
    report = {"seq": 2, "type": "metrics", "kind": "training", "batches": [10**30], "metrics": {"loss": [1.0]}}
    (spool / "000000000002.jsonl").write_text(json.dumps(report) + "\n")
    master.launcher.end(job.run_id, 1)
    master.until_state(1, "ERROR")
    said = [line["text"] for line in master.get(f"/trials/{job.trial_id}/logs")]
    assert any("too large" in line for line in said), said


def test_a_killed_experiment_is_canceled_with_all_its_trials(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 4}})
    jobs = master.world.wait_for_jobs(2)
    answer = master.client.post(f"/api/v1/experiments/{experiment['id']}/kill")
    assert answer.json()["state"] in ("STOPPING_CANCELED", "CANCELED")
    master.until_state(experiment["id"], "CANCELED")
    trials = master.get(f"/experiments/{experiment['id']}/trials")
    assert [trial["state"] for trial in trials] == ["CANCELED"] * 4
    assert {run_id for run_id, _ in master.launcher.killed} == {job.run_id for job in jobs}
    assert len(master.world.jobs) == 2
    assert master.client.post(f"/api/v1/experiments/{experiment['id']}/kill").json()["state"] == "CANCELED"


def test_a_worker_that_cannot_be_reached_is_told_to_stop(master: Master) -> None:
    master.launcher.exit_on_kill = False
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    master.client.post(f"/api/v1/experiments/{experiment['id']}/kill")
    assert worker.send().stop
    assert worker.train(1, 1).stop
    master.launcher.end(job.run_id, -15)
    master.until_state(experiment["id"], "CANCELED")


def test_superfluous_checkpoints_are_deleted_at_the_end(master: Master) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    for batch, loss in ((10, 0.5), (20, 0.1), (30, 0.3), (40, 0.4)):
        worker.checkpoint(batch)
        worker.validate(batch, loss=loss)
    worker.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    path = f"/experiments/{experiment['id']}/checkpoints"
    found = master.until(path, lambda found: sum(one["state"] == "DELETED" for one in found) == 2)
    assert [one["state"] for one in found] == ["DELETED", "COMPLETED", "DELETED", "COMPLETED"]
    kept = [one for one in found if one["state"] == "COMPLETED"]
    uuids = sorted(one["uuid"] for one in kept)
    master.until(path, lambda _: sorted(folder.name for folder in Path(job.checkpoints).glob("0*")) == uuids)
    file = f"/api/v1/checkpoints/{kept[0]['uuid']}/files/weights"
    assert master.client.get(file).text == "weights after 20"
    assert master.client.get(file.replace(kept[0]["uuid"], found[0]["uuid"])).status_code == 404


@pytest.mark.long
def test_a_quick_check_trains_one_batch_and_keeps_its_last_checkpoint(master: Master) -> None:
    experiment = master.create({"searcher": {"name": "random", "max_trials": 9}}, test=True)
    (job,) = master.world.wait_for_jobs(1)
    assert job.config["searcher"]["name"] == "single"
    assert job.config["searcher"]["max_length"] == {"batches": 1}
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 1)
    worker.checkpoint(1)
    worker.validate(1, loss=0.5)
    worker.exit(batch=1)
    master.until_state(experiment["id"], "COMPLETED")
    found = master.get(f"/experiments/{experiment['id']}/checkpoints")
    assert [one["state"] for one in found] == ["COMPLETED"], "it comes into the notebook"


@pytest.mark.long
def test_a_second_master_takes_up_the_workers_of_the_first(tmp_path: Path) -> None:
    with running_master(tmp_path / "home") as first:
        experiment = first.create({"searcher": {"name": "random", "max_trials": 4}})
        jobs = first.world.wait_for_jobs(2)
        for job in jobs:
            Worker(first, job).start()
        world = first.world
    reports = [
        {"seq": 2, "type": "metrics", "kind": "validation", "batches": [100], "metrics": {"loss": [0.5]}},
        {"seq": 3, "type": "exit", "reason": "COMPLETED", "batch": 100},
    ]
    leave(jobs[0], reports)
    world.alive.discard(jobs[0].run_id)
    with running_master(tmp_path / "home", launcher=MemoryLauncher(world)) as second:
        third = second.world.wait_for_jobs(3)[2]
        assert third.trial_id == 3
        trials = second.get(f"/experiments/{experiment['id']}/trials")
        assert [trial["state"] for trial in trials] == ["COMPLETED", "RUNNING", "RUNNING", "QUEUED"]
        living = Worker(second, jobs[1])
        living.seq = 1
        living.validate(100, loss=0.25)
        living.exit(batch=100)
        Worker(second, third).complete()
        Worker(second, second.world.wait_for_jobs(4)[3]).complete()
        assert second.until_state(experiment["id"], "COMPLETED")["best_validation"] == 0.25
        assert [trial["restarts"] for trial in second.get(f"/experiments/{experiment['id']}/trials")] == [0] * 4


def leave(job: TrialJob, reports: list[dict[str, Any]]) -> None:
    spool = Path(job.directory) / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    (spool / "000000000002.jsonl").write_text("".join(json.dumps(report) + "\n" for report in reports))


@pytest.mark.long
def test_workers_that_end_with_the_master_cost_no_restart(tmp_path: Path) -> None:
    with running_master(tmp_path / "home") as first:
        experiment = first.create()
        (job,) = first.world.wait_for_jobs(1)
        worker = Worker(first, job)
        worker.start()
        _, report = publish(job, 30)
        worker.send(report)
        assert first.client.post("/api/v1/master/shutdown", params={"kill": True}).status_code == 202
        world = first.world
    assert world.alive == set()
    with running_master(tmp_path / "home", launcher=MemoryLauncher(world)) as second:
        again = second.world.wait_for_jobs(2)[1]
        assert again.resume is not None
        assert again.resume.batch == 30
        assert second.get("/trials/1")["restarts"] == 0
        resumed = Worker(second, again)
        resumed.start(30)
        resumed.validate(100, loss=0.5)
        resumed.exit(batch=100)
        second.until_state(experiment["id"], "COMPLETED")


def test_two_masters_on_one_database_are_refused(master: Master) -> None:
    with pytest.raises(MasterStartError, match="Another master"):
        build(master.service.places.home, MemoryLauncher(), [], "http://127.0.0.1:1")


def test_a_worker_that_stays_after_its_last_word_is_ended(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.master.flow.runs.LINGER_SECONDS", 0.0)
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.send({"type": "exit", "reason": "COMPLETED", "batch": 100})
    master.until_state(experiment["id"], "COMPLETED")
    master.until("/master", lambda found: all(slot["trial_id"] is None for slot in found["slots"]))
    assert master.launcher.killed == [(job.run_id, 0.0)]


def test_output_of_workers_reaches_the_logs(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    master.world.output[job.run_id] = "hello\nworld\n"
    lines = master.until("/trials/1/logs", lambda lines: len(lines) == 2)
    assert [(line["text"], line["stream"], line["run_id"]) for line in lines] == [
        ("hello", "stdout", job.run_id),
        ("world", "stdout", job.run_id),
    ]


def test_bundles_are_checked_once_they_pass(master: Master) -> None:
    bundle = master.bundle()
    problem = {"ok": False, "problems": [{"where": "cell 3", "what": "no module named x", "remedy": ""}]}
    master.launcher.check_result = problem
    checked = master.client.post(f"/api/v1/bundles/{bundle}/check").json()
    assert (checked["ok"], checked["problems"][0]["where"]) == (False, "cell 3")
    master.launcher.check_result = None
    checked = master.client.post(f"/api/v1/bundles/{bundle}/check").json()
    assert "ended without a result" in checked["problems"][0]["what"]
    assert master.get(f"/bundles/{bundle}/created")["checked"] is False
    master.launcher.check_result = {"ok": True}
    assert master.client.post(f"/api/v1/bundles/{bundle}/check").json()["ok"] is True
    assert master.get(f"/bundles/{bundle}/created")["checked"] is True
    assert list((master.service.places.home / "runs").iterdir()) == []


def test_a_bundle_whose_blobs_were_lost_is_to_be_sent_again(master: Master) -> None:
    content = {hashlib.sha256(text).hexdigest(): text for text in (b"code", b"data")}
    files = tuple(FileEntry(path=sha256, sha256=sha256, size=4) for sha256 in content)
    body = manifest().model_copy(update={"files": files}).model_dump(mode="json")
    packed = b"".join(pack(content))
    assert master.client.post("/api/v1/blobs", content=packed).status_code == 200
    bundle = master.client.post("/api/v1/bundles", json=body).json()["id"]
    for _ in range(2):
        assert master.get(f"/bundles/{bundle}/created")["id"] == bundle
    shutil.rmtree(Path(master.service.blobs.uri) / next(iter(content))[:2])
    lost = master.client.get(f"/api/v1/bundles/{bundle}/created")
    assert (lost.status_code, "send it again" in lost.json()["error"]) == (404, True)
    experiment = {"protocol": PROTOCOL, "config": configuration(), "bundle_id": bundle}
    refused = master.client.post("/api/v1/experiments", json=experiment)
    assert (refused.status_code, "send it again" in refused.json()["error"]) == (404, True)
    master.client.post("/api/v1/blobs", content=packed)
    assert master.client.post("/api/v1/bundles", json=body).json()["id"] == bundle
    assert master.get(f"/bundles/{bundle}/created")["id"] == bundle


@pytest.mark.long
def test_the_log_tells_what_happened(master: Master, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="det_native.master")
    experiment = master.create({"max_restarts": 1, "name": "digits"})
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).exit(ExitReason.USER_ERROR, batch=3, message="boom")
    *_, again = master.world.wait_for_jobs(2)
    Worker(master, again).complete()
    master.until_state(experiment["id"], "COMPLETED")
    master.until("/master", lambda _: f"run {again.run_id} of trial 1.1 is gone" in caplog.text)
    told = [
        "experiment 1 submitted: 'digits'",
        f"run {job.run_id} of trial 1.1 started on cpu:0",
        f"run {job.run_id} of trial 1.1 is gone",
        "trial 1.1: queued again. ValueError: boom",
        f"run {again.run_id} of trial 1.1 started on cpu:0",
        "trial 1.1: completed",
        "experiment 1 ended: Completed",
    ]
    places = [caplog.text.index(text) for text in told]
    assert places == sorted(places)


def test_what_a_worker_dies_of_before_it_starts_is_told(master: Master) -> None:
    experiment = master.create({"max_restarts": 0})
    (job,) = master.world.wait_for_jobs(1)
    master.launcher.end(job.run_id, 127, "the interpreter has no det_native")
    error = master.until_state(experiment["id"], "ERROR")["error"]
    assert "the interpreter has no det_native" in error["message"]


@pytest.mark.long
def test_a_queued_experiment_tells_what_it_waits_for_until_it_runs(master: Master) -> None:
    gang = {"resources": {"slots_per_trial": 2}}
    first = master.create(gang)
    worker = Worker(master, master.world.wait_for_jobs(1)[0])
    worker.start()
    second = master.create(gang)
    path = f"/experiments/{second['id']}"
    known = master.until(path, lambda found: found["waits_for"] != "")
    assert known["waits_for"] == f"2 of 2 slots: #{first['id']} has them"
    assert master.get(f"/experiments/{first['id']}")["waits_for"] == ""
    told = [event for event in master_events(master, second["id"]) if event["waits_for"]]
    assert told, "a live view hears of it"
    assert "waits for 2 of 2 slots: #1 has them" in described(master, second["id"])
    worker.complete()
    assert master.until(path, lambda found: found["started"])["waits_for"] == ""
    assert master.get("/experiments")[0]["waits_for"] == ""
    assert master_events(master, second["id"])[-1]["waits_for"] == ""


def described(master: Master, experiment_id: int) -> str:
    asked = ["--master", str(master.client.base_url), "experiment", "describe", str(experiment_id)]
    told = CliRunner().invoke(cli, asked, env={"DET_TOKEN": master.token}, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return told.output


def master_events(master: Master, experiment_id: int) -> list[dict[str, Any]]:
    with master.service.database.read() as connection:
        return [
            event.data
            for event in events.after(connection, OWNER, 0, experiment_id=experiment_id)
            if event.type == "experiment"
        ]
