"""Trainings in a kernel or script of the user's: a master records them, reads what they write, and ends none."""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from kernel_parts import STARTED, KernelWorker, kernel_run, process_facts, record, sleeping_process
from master_parts import Master, MemoryLauncher, Worker, running_master

from det_native import PROTOCOL
from det_native.master.flow import kernels
from det_native.schema.sealed import seal
from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow  # a whole master for each test


def home_of(master: Master) -> Path:
    return master.service.places.home


def begun(master: Master, **fields: Any) -> KernelWorker:
    """Have a training recorded that goes on in the process of this test."""
    worker = KernelWorker(master, kernel_run(home_of(master), process_facts(os.getpid()), **fields))
    worker.start(length=400)
    worker.train(1, 120)
    return worker


def system_lines(master: Master, trial_id: int) -> list[str]:
    return [line["text"] for line in master.get(f"/trials/{trial_id}/logs") if line["stream"] == "system"]


def test_a_training_in_a_kernel_is_an_experiment_of_one_trial_that_holds_no_slot(master: Master) -> None:
    asked = kernel_run(
        home_of(master), process_facts(os.getpid()), {"name": "digits", "labels": ["a"]}, bundle_id=master.bundle()
    )
    worker = KernelWorker(master, asked)
    again = record(master, asked).json()
    assert (again["experiment_id"], again["trial_id"]) == (worker.experiment_id, worker.trial_id)
    known = master.get(f"/experiments/{worker.experiment_id}")
    assert (known["name"], known["labels"], known["state"], known["in_kernel"]) == ("digits", ["a"], "ACTIVE", True)
    assert (known["created"], known["started"], known["trials"], known["no_program"]) == (STARTED, STARTED, 1, "")
    assert not worker.start().stop
    worker.train(1, 400)
    (Path(asked.directory) / "output.log").write_text("epoch 1\nepoch 2\n")
    (Path(asked.directory) / "tensorboard").mkdir()
    (Path(asked.directory) / "tensorboard" / "events").write_text("of batch 1")
    events = home_of(master) / "tensorboard" / str(worker.experiment_id) / str(worker.trial_id) / "events"
    master.until("/master", lambda _: events.exists())
    uuid = worker.checkpoint(400)
    worker.validate(400, loss=0.25)
    trial = master.get(f"/trials/{worker.trial_id}")
    assert (trial["state"], trial["hparams"], trial["seed"]) == ("RUNNING", {"global_batch_size": 32}, 7)
    assert (trial["batches"], trial["target_batches"], trial["slots"]) == (400, 400, [])
    assert [slot["trial_id"] for slot in master.get("/master")["slots"]] == [None, None]
    assert master.get("/queue")["entries"] == []
    worker.exit(batch=400)
    ended = master.until_state(worker.experiment_id, "COMPLETED")
    assert (ended["progress"], ended["best_validation"], ended["error"]) == (1.0, 0.25, None)
    assert [line["text"] for line in master.get(f"/trials/{worker.trial_id}/logs")] == ["epoch 1", "epoch 2"]
    assert master.get(f"/checkpoints/{uuid}")["state"] == "COMPLETED"
    files = master.client.get(f"/api/v1/checkpoints/{uuid}/files/weights")
    assert files.text == "weights after 400"
    assert not master.world.jobs
    master.until("/master", lambda _: not (Path(asked.directory) / "tensorboard").exists() and events.exists())
    assert (events.read_text(), events.parent.is_symlink()) == ("of batch 1", False)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_training_in_a_kernel_hears_with_its_next_report_that_it_is_to_end(master: Master, how: str) -> None:
    worker = begun(master)
    stopping = master.client.post(f"/api/v1/experiments/{worker.experiment_id}/{how}").json()
    assert stopping["state"] == "STOPPING_CANCELED"
    assert worker.train(121, 130).stop
    worker.exit(ExitReason.STOPPED, batch=130)
    ended = master.until_state(worker.experiment_id, "CANCELED")
    assert (ended["error"], ended["progress"]) == (None, 130 / 400)
    assert master.launcher.killed == []


def test_it_is_not_paused_nor_given_slots_and_the_refusal_says_what_to_do(master: Master) -> None:
    worker = begun(master)
    refused = master.client.post(f"/api/v1/experiments/{worker.experiment_id}/pause")
    assert refused.status_code == 409
    assert "stop() ends it with a checkpoint" in refused.json()["error"]
    assert not worker.train(121, 121).stop
    body = {"resources": {"priority": 1}}
    assert master.client.patch(f"/api/v1/experiments/{worker.experiment_id}", json=body).status_code == 409


@pytest.mark.parametrize(
    ("in_kernel", "who"),
    [(True, "its kernel was restarted or ended in the middle of it"), (False, "its process ({}) ended in the middle")],
)
def test_a_process_that_is_gone_without_a_word_has_stopped_its_experiment(
    master: Master, *, in_kernel: bool, who: str
) -> None:
    with sleeping_process() as process:
        facts = process_facts(process.pid, in_kernel=in_kernel)
        worker = KernelWorker(master, kernel_run(home_of(master), facts))
        worker.start(length=400)
        worker.train(1, 100)
        rest = {"type": "metrics", "kind": "training", "metrics": {"loss": [0.5] * 20}}
        left = json.dumps({"seq": 3, "batches": [*range(101, 121)], **rest})
        (Path(worker.asked.directory) / "spool" / "00000001.jsonl").write_bytes(seal(left))
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended = master.until_state(worker.experiment_id, "CANCELED")
    assert ended["error"]["type"] == "Stopped"
    assert ended["error"]["message"].startswith(who.format(process.pid))
    assert ended["error"]["message"].endswith("after batch 120 of 400.")
    trial = master.get(f"/trials/{worker.trial_id}")
    assert (trial["state"], trial["batches"], trial["restarts"]) == ("CANCELED", 120, 0)


def test_an_interrupt_of_the_user_stops_it_and_an_error_fails_it_once(master: Master) -> None:
    interrupted = begun(master)
    interrupted.exit(ExitReason.STOPPED, batch=120)
    ended = master.until_state(interrupted.experiment_id, "CANCELED")
    assert ended["error"]["message"] == (
        "interrupted (by Ctrl-C, Stop, or a restart of its kernel) after batch 120 of 400."
    )
    failed = begun(master)
    failed.exit(ExitReason.USER_ERROR, batch=120, message="boom")
    ended = master.until_state(failed.experiment_id, "ERROR")
    assert ended["error"]["message"] == "boom"
    assert master.get(f"/trials/{failed.trial_id}")["restarts"] == 0
    # The process of both lives, and its run is over: nothing more is taken of it.
    assert failed.post({"seq": 9, "type": "started", "batch": 0}).status_code == 409


def test_a_process_of_another_machine_counts_as_ended_once_nothing_was_heard_of_it_for_long(
    tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_master(tmp_path / "home", database_url=migrated_url) as master:
        is_silent_and_wakes_up(master, monkeypatch)


def is_silent_and_wakes_up(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    far = process_facts(2**22 + 1, namespace="pid:[1]")
    worker = KernelWorker(master, kernel_run(home_of(master), far, length=0))
    worker.start()
    worker.train(1, 30)
    master.service.reschedule()
    assert master.get(f"/experiments/{worker.experiment_id}")["state"] == "ACTIVE"
    monkeypatch.setattr(kernels, "SILENT_SECONDS", 0.0)
    message = master.until_state(worker.experiment_id, "CANCELED")["error"]["message"]
    assert message == "nothing was heard of it for 0 s, and it counts as ended, after batch 30."
    monkeypatch.undo()
    # The laptop wakes up, and its training goes on as if nothing had been.
    assert worker.post().json()["stop"] is False
    assert not worker.train(31, 40).stop
    going_on = master.get(f"/experiments/{worker.experiment_id}")
    assert (going_on["state"], going_on["error"], going_on["ended"]) == ("ACTIVE", None, None)
    worker.exit(batch=40)
    master.until_state(worker.experiment_id, "COMPLETED")
    trial = master.get(f"/trials/{worker.trial_id}")
    assert (trial["state"], trial["batches"], trial["error"]) == ("COMPLETED", 40, None)


def test_a_run_that_has_left_its_exit_report_on_the_disk_is_over_though_its_process_lives(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "UNSENT_SECONDS", 0.0)
    worker = begun(master)
    report = {"type": "exit", "seq": 3, "reason": "COMPLETED", "batch": 120, "early": True}
    (Path(worker.asked.directory) / "exit.json").write_text(json.dumps(report))
    assert master.until_state(worker.experiment_id, "COMPLETED")["progress"] == 1.0


def test_without_a_program_it_is_an_experiment_like_others_but_nothing_is_made_of_it(master: Master) -> None:
    worker = begun(master, no_program="The cell was typed in a console.")
    worker.checkpoint(120)
    worker.exit(batch=120, early=True)
    number = worker.experiment_id
    master.until_state(number, "COMPLETED")
    assert master.get(f"/experiments/{number}")["no_program"] == "The cell was typed in a console."
    for asked, body in (("fork", {}), ("continue", {"length": 1, "unit": "batches"})):
        refused = master.client.post(f"/api/v1/experiments/{number}/{asked}", json=body)
        assert refused.status_code == 409, refused.text
        assert "The cell was typed in a console." in refused.json()["error"]
    assert master.client.delete(f"/api/v1/experiments/{number}").status_code == 200
    assert not Path(worker.asked.directory).exists()


def test_checkpoints_that_a_kernel_has_in_another_folder_are_read_kept_and_deleted_there(
    master: Master, tmp_path: Path
) -> None:
    folder = tmp_path / "of the kernel"
    asked = kernel_run(home_of(master), process_facts(os.getpid()), bundle_id=master.bundle())
    worker = KernelWorker(master, asked, folder)
    worker.start(length=20)
    uuids = []
    for batch, loss in ((10, 0.5), (20, 0.1)):
        worker.train(batch - 9, batch)
        uuids.append(worker.checkpoint(batch))
        worker.validate(batch, loss=loss)
    number = worker.experiment_id
    assert master.client.get(f"/api/v1/checkpoints/{uuids[0]}/files/weights").text == "weights after 10"
    worker.exit(batch=20)
    master.until_state(number, "COMPLETED")
    master.until("/master", lambda _: sorted(each.name for each in folder.glob("0*")) == [uuids[1]])
    assert master.client.post(f"/api/v1/checkpoints/{uuids[1]}/verify").json()["ok"]
    body = {"length": 10, "unit": "batches"}
    assert master.client.post(f"/api/v1/experiments/{number}/continue", json=body).status_code == 201
    (job,) = master.world.wait_for_jobs(1)
    assert job.warm_start is not None
    assert (job.warm_start.checkpoints, job.warm_start.manifest.uuid) == (str(folder), uuids[1])
    assert job.checkpoints == str(home_of(master) / "checkpoints")
    Worker(master, job).complete(10)
    master.until_state(job.experiment_id, "COMPLETED")
    assert master.client.delete(f"/api/v1/experiments/{job.experiment_id}").status_code == 200
    assert master.client.delete(f"/api/v1/experiments/{number}").status_code == 200
    assert [*folder.glob("0*")] == []


def test_what_stays_on_another_machine_of_a_training_there_is_said(master: Master, tmp_path: Path) -> None:
    laptop, there = tmp_path / "laptop", tmp_path / "there"
    asked = kernel_run(laptop, process_facts(2**22 + 1, namespace="pid:[1]", machine="laptop"))
    laptop.rename(tmp_path / "out of reach")
    worker = KernelWorker(master, asked, there)
    worker.start(length=20)
    uuid = worker.checkpoint(20)
    notice = master.get(f"/trials/{worker.trial_id}")["notice"]
    assert notice.startswith("it trains on laptop: its output stays there, and its checkpoints")
    there.rename(tmp_path / "out of reach, too")
    for answer in (
        master.client.get(f"/api/v1/checkpoints/{uuid}/files/weights"),
        master.client.post(f"/api/v1/checkpoints/{uuid}/verify"),
    ):
        assert answer.status_code == 424
        assert f"lie in {there} on the machine of its kernel" in answer.json()["error"]


def test_its_configuration_is_kept_without_secrets_and_nothing_is_asked_of_workers(master: Master) -> None:
    config = {
        "notify": [{"webhook": "https://example.org/hook", "secret": "hush-hush"}],
        "resources": {"slots_per_trial": 16},
        "checkpoint_storage": {"type": "s3", "bucket": "none", "access_key": "a", "secret_key": "hush-hush"},
    }
    asked = kernel_run(home_of(master), process_facts(os.getpid()), config, framework="tf_estimator")
    answer = record(master, asked)
    assert answer.status_code == 200, answer.text
    assert "hush-hush" not in json.dumps(master.get("/experiments/1"))


def test_a_training_that_reports_nothing_for_long_is_left_alone(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    poll = kernels.Kernels.poll

    def counted(self: kernels.Kernels, silence: Any) -> Any:
        looks.append(1)
        return poll(self, silence)

    worker = KernelWorker(
        master, kernel_run(home_of(master), process_facts(os.getpid()), {"watchdog": {"minutes": 0.0001}})
    )
    monkeypatch.setattr(kernels.Kernels, "poll", counted)
    master.until("/master", lambda _: len(looks) > 3)
    assert (master.launcher.stacks_asked, master.launcher.killed) == ([], [])
    assert not worker.start().stop


def test_a_fork_keeps_its_checkpoints_with_the_master_and_not_in_a_folder_of_the_kernels_machine(
    master: Master,
) -> None:
    for place, kept in (("/of/a/laptop/checkpoints", None), (str(home_of(master)), "url")):
        config = {"checkpoint_storage": {"type": "url", "url": place, "save_trial_latest": 3}}
        worker = begun(master, config=config, bundle_id=master.bundle())
        fork = master.client.post(f"/api/v1/experiments/{worker.experiment_id}/fork", json={})
        assert fork.status_code == 201, fork.text
        storage = fork.json()["config"]["checkpoint_storage"]
        assert (storage["save_trial_latest"], storage["type"]) == (3, kept)


def test_what_cannot_be_recorded_is_refused(master: Master) -> None:
    here = process_facts(os.getpid())
    home = home_of(master)
    search = {"searcher": {"name": "random", "max_trials": 2}}
    for asked, what in (
        (kernel_run(home, here, search), "a kernel trains a single trial"),
        (kernel_run(home, here, started="yesterday"), "is not a time"),
        (kernel_run(home, here, directory="/etc"), "is not the folder of run"),
        (kernel_run(home, here).model_copy(update={"run_id": "../../x"}), "is not a ULID"),
    ):
        refused = record(master, asked)
        assert (refused.status_code, what in refused.json()["error"]) == (400, True), refused.text
    assert record(master, kernel_run(home, here, bundle_id="0" * 64)).status_code == 404
    assert record(master, kernel_run(home, here, protocol=PROTOCOL + 1)).status_code == 426
    assert master.get("/experiments") == []


def test_the_next_master_goes_on_with_those_that_live_and_ends_those_that_are_gone(tmp_path: Path) -> None:
    launcher = MemoryLauncher()
    home = tmp_path / "home"
    with sleeping_process() as process, running_master(home, launcher=launcher) as master:
        living = begun(master)
        gone = KernelWorker(master, kernel_run(home, process_facts(process.pid)))
        gone.start(length=400)
        gone.train(1, 7)
        master.service.kill_workers = True  # which are the master's own
    for times in itertools.count(1):
        with running_master(home, launcher=MemoryLauncher(launcher.world)) as master:
            ended = master.until_state(gone.experiment_id, "CANCELED")
            assert ended["error"]["message"].endswith("in the middle of it, after batch 7 of 400.")
            living.master = master
            assert not living.train(120 + times, 120 + times).stop
            if times == 3:
                living.exit(batch=123, early=True)
                master.until_state(living.experiment_id, "COMPLETED")
                trial = master.get(f"/trials/{living.trial_id}")
                assert (trial["batches"], trial["restarts"], trial["number"]) == (123, 0, 1)
                assert len(master.get(f"/experiments/{living.experiment_id}/trials")) == 1
                return
