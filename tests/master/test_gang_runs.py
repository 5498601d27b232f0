"""Trials on several slots: what the master decides, around a launcher without processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, MemoryLauncher, Worker, running_master

from det_native.schema.exit_report import exit_report_of_run
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.ranks import rank_folder, rank_jobs
from det_native.schema.rest import ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason

pytestmark = pytest.mark.slow  # a whole master for each test

TWO = {"resources": {"slots_per_trial": 2}}


def word(reason: ExitReason, rank: int = 0, message: str = "no seventh batch", batch: int = 7) -> ExitReport:
    error = UserErrorInfo(type="ValueError", message=message, traceback="...", batch=batch, rank=rank)
    return ExitReport(seq=1, reason=reason, batch=batch, error=error if reason.failed else None)


def leave(folder: Path, *words: ExitReport | None) -> None:
    """Leave the last words of the ranks in a run's folder."""
    for rank, last in enumerate(words):
        rank_folder(folder, rank).mkdir(parents=True, exist_ok=True)
        if last is not None:
            (rank_folder(folder, rank) / "exit.json").write_text(last.model_dump_json())


def held(master: Master) -> list[int | None]:
    return [slot["trial_id"] for slot in master.get("/master")["slots"]]


def test_a_trial_gets_all_its_slots_or_waits(master: Master) -> None:
    first = master.create()
    master.world.wait_for_jobs(1)
    gang = master.create(TWO)
    one = master.world.wait_for_jobs(1)[0]
    trials = master.until(f"/experiments/{gang['id']}/trials", bool)
    assert [(trial["id"], trial["slots"]) for trial in trials] == [(2, [])]
    Worker(master, one).complete()
    job = master.world.wait_for_jobs(2)[1]
    assert (job.trial_id, master.world.ranks[job.run_id]) == (2, 2)
    assert job.threads >= 2
    assert master.get("/trials/2")["slots"] == ["cpu:0", "cpu:1"]
    master.until("/master", lambda _: held(master) == [2, 2])
    later = master.create()
    Worker(master, job).complete()
    assert master.world.wait_for_jobs(3)[2].experiment_id == later["id"]
    for experiment in (first, gang):
        master.until_state(experiment["id"], "COMPLETED")
    assert master.get("/trials/2")["slots"] == []


def test_a_search_of_small_trials_does_not_starve_one_on_two_slots(master: Master) -> None:
    master.create({"searcher": {"name": "random", "max_trials": 4}})
    first, second = master.world.wait_for_jobs(2)
    gang = master.create(TWO)
    master.until(f"/experiments/{gang['id']}/trials", bool)
    Worker(master, first).complete()
    master.until("/master", lambda _: held(master) == [None, 2])
    Worker(master, second).complete()
    job = master.world.wait_for_jobs(3)[2]
    assert job.experiment_id == gang["id"]
    Worker(master, job).complete()
    assert {one.trial_id for one in master.world.wait_for_jobs(5)[3:]} == {3, 4}


def test_a_trial_that_a_smaller_cluster_cannot_run_waits_and_says_so(tmp_path: Path) -> None:
    launcher = MemoryLauncher()
    with running_master(tmp_path, launcher=launcher, slots=3) as master:
        master.create()
        master.create({"resources": {"slots_per_trial": 3}})
        master.until("/experiments/2/trials", bool)
    with running_master(tmp_path, launcher=MemoryLauncher(launcher.world), slots=2) as master:
        lines = master.until("/trials/2/logs", bool)
        assert "needs 3 slots, and the cluster was started with 2" in lines[0]["text"]
        assert "`det up --slots 3`" in lines[0]["text"]
        later = master.create(TWO)
        Worker(master, launcher.world.wait_for_jobs(1)[0]).complete()
        assert launcher.world.wait_for_jobs(2)[1].experiment_id == later["id"]


def test_a_framework_that_spreads_the_work_itself_has_one_process_on_all_slots(master: Master) -> None:
    master.create({"resources": {"slots_per_trial": 2, "native_parallel": True}})
    (job,) = master.world.wait_for_jobs(1)
    assert master.world.ranks[job.run_id] == 1
    master.until("/master", lambda _: held(master) == [1, 1])


def test_the_error_of_another_rank_is_the_trials_and_is_not_tried_a_third_time(master: Master) -> None:
    experiment = master.create(TWO)
    # Whichever rank fails first by an error of all of them: it is the same error.
    for attempt, failing in enumerate((1, 0)):
        job = master.world.wait_for_jobs(attempt + 1)[attempt]
        Worker(master, job).start()
        others = word(ExitReason.PEER_FAILED, 1 - failing, "connection closed")
        words = [others, others]
        words[failing] = word(ExitReason.USER_ERROR, failing)
        leave(Path(job.directory), *words)
        master.launcher.end(job.run_id, 1)
    ended = master.until_state(experiment["id"], "ERROR")
    assert (ended["error"]["message"], ended["error"]["rank"]) == ("no seventh batch", 0)
    assert master.get("/trials/1")["restarts"] == 1
    errors = [line["text"] for line in master.get("/trials/1/logs") if "no seventh batch" in line["text"]]
    assert errors[0].startswith("[rank 1] ValueError: no seventh batch. Restart 1")


def test_a_rank_that_died_is_a_restart_though_the_others_told_what_they_saw_of_it(master: Master) -> None:
    experiment = master.create({**TWO, "max_restarts": 1})
    for attempt in range(2):
        job = master.world.wait_for_jobs(attempt + 1)[attempt]
        Worker(master, job).start()
        leave(Path(job.directory), word(ExitReason.PEER_FAILED, 0, "connection closed"), None)
        master.launcher.end(job.run_id, -9, "rank 1 of 2: killed by signal 9 (SIGKILL)")
    ended = master.until_state(experiment["id"], "ERROR")
    assert ended["error"]["type"] == "WorkerDied"
    assert "rank 1 of 2: killed by signal 9" in ended["error"]["message"]
    assert master.get("/trials/1")["restarts"] == 1


def test_the_log_says_which_rank_has_written_a_line_and_a_new_master_goes_on_there(tmp_path: Path) -> None:
    launcher = MemoryLauncher()
    with running_master(tmp_path, launcher=launcher) as master:
        master.create(TWO)
        (job,) = master.world.wait_for_jobs(1)
        Worker(master, job).start()
        master.world.output |= {job.run_id: "chief\n", f"{job.run_id}/1": "helper\n"}
        wanted = [("chief", 0), ("helper", 1)]
        master.until("/trials/1/logs", lambda lines: [(line["text"], line["rank"]) for line in lines] == wanted)
    again = MemoryLauncher(launcher.world)
    with running_master(tmp_path, launcher=again) as master:
        master.world.output[f"{job.run_id}/1"] += "goes on\n"
        wanted.append(("goes on", 1))
        master.until("/trials/1/logs", lambda lines: [(line["text"], line["rank"]) for line in lines] == wanted)
        worker = Worker(master, job)
        worker.seq = 1
        worker.exit(batch=100)
        master.until_state(1, "COMPLETED")


def test_working_directories_of_all_ranks_are_tidied(master: Master) -> None:
    master.create(TWO)
    (job,) = master.world.wait_for_jobs(1)
    works = [rank_folder(Path(job.directory), rank) / "work" for rank in range(2)]
    for work in works:
        work.mkdir(parents=True)
    (works[1] / "result.txt").write_text("the user's")
    Worker(master, job).complete()
    master.until("/master", lambda _: not works[0].exists())
    assert (works[1] / "result.txt").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((word(ExitReason.COMPLETED), None), ExitReason.COMPLETED),
        ((word(ExitReason.STOPPED), word(ExitReason.PEER_FAILED)), ExitReason.STOPPED),
        ((word(ExitReason.PEER_FAILED), word(ExitReason.HARNESS_ERROR, 1)), ExitReason.HARNESS_ERROR),
        ((None, word(ExitReason.USER_ERROR, 1)), ExitReason.USER_ERROR),
        ((word(ExitReason.PEER_FAILED), None), None),
        ((None, word(ExitReason.COMPLETED)), None),
        ((word(ExitReason.PEER_FAILED), word(ExitReason.PEER_FAILED, 1)), ExitReason.PEER_FAILED),
    ],
)
def test_the_last_word_of_a_run(tmp_path: Path, words: tuple[Any, ...], told: ExitReason | None) -> None:
    leave(tmp_path, *words)
    found = exit_report_of_run(tmp_path, len(words))
    assert (found.reason if found else None) == told


def test_one_process_has_the_job_as_it_is(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    assert rank_jobs(job, 1) == [job]
    check = CheckJob(protocol=job.protocol, directory="x", blobs="", bundle=job.bundle)
    assert rank_jobs(check, 1) == [check]


def test_threads_are_shared_out_and_slots_without_devices_have_none(master: Master) -> None:
    master.create(TWO)
    (job,) = master.world.wait_for_jobs(1)
    jobs = rank_jobs(job.model_copy(update={"threads": 5}), 2)
    for rank, one in enumerate(jobs):
        assert isinstance(one, TrialJob)
        assert one.gang is not None
        assert (one.gang.rank, one.threads, one.devices, one.run_id) == (rank, 2, [], job.run_id)
