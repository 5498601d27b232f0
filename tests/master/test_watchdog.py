"""Trials that report nothing: the rules alone, and a master with a launcher without processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, Worker

from det_native.master.flow import watching
from det_native.master.flow.watchdog import Verdict, Watch
from det_native.schema.watchdog import Watchdog


def watch(minutes: float = 30.0) -> Watch:
    return Watch.begin(Watchdog(minutes=minutes), now=0.0)


def test_it_is_told_at_half_of_the_time_and_ended_after_all_of_it() -> None:
    one = watch()
    assert [one.verdict(now) for now in (899.0, 900.0, 950.0, 1799.0, 1800.0, 1900.0)] == [
        *(Verdict.NOTHING, Verdict.TELL, Verdict.NOTHING, Verdict.NOTHING, Verdict.END, Verdict.NOTHING),
    ]


def test_whatever_it_reports_counts_but_a_heartbeat_does_not() -> None:
    one = watch()
    one.heard(800.0, reports=False, counter=None)
    assert one.verdict(900.0) is Verdict.TELL
    one.heard(901.0, reports=False, counter=5)
    one.heard(1000.0, reports=False, counter=5)
    assert one.verdict(1800.0) is Verdict.NOTHING
    assert one.verdict(1801.0) is Verdict.TELL
    one.heard(1802.0, reports=True, counter=5)
    assert one.verdict(2701.0) is Verdict.NOTHING
    one.wrote(2701.0)
    assert one.verdict(3600.0) is Verdict.NOTHING


def test_the_stacks_that_were_asked_for_are_no_progress() -> None:
    one = watch()
    assert one.verdict(900.0) is Verdict.TELL
    one.wrote(901.0)
    assert one.verdict(1800.0) is Verdict.END


def test_it_can_be_switched_off() -> None:
    assert watch(0.0).verdict(1e9) is Verdict.NOTHING


@given(st.lists(st.tuples(st.floats(0.0, 3000.0), st.sampled_from(["report", "count", "write", "beat"]))))
def test_a_run_that_makes_progress_in_time_is_never_ended(events: list[tuple[float, str]]) -> None:
    one, now, last, counter = watch(), 0.0, 0.0, 0
    for pause, kind in events:
        now += pause
        verdict = one.verdict(now)
        assert verdict is not Verdict.END or now - last >= 1800.0
        if verdict is Verdict.END:
            return
        if kind == "count":
            counter += 1
        if kind == "write":
            one.wrote(now)
        else:
            one.heard(now, reports=kind == "report", counter=counter)
        if kind in ("report", "count") or (kind == "write" and one.progressed == now):
            last = now


HUNG = {"watchdog": {"minutes": 0.01}, "max_restarts": 1}


def test_a_run_that_hangs_is_told_with_its_stacks_ended_and_tried_again(master: Master) -> None:
    number = master.create(HUNG)["id"]
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    master.world.wait_for_jobs(2)
    assert master.launcher.stacks_asked[0] == job.run_id
    assert (job.run_id, 2.0) in master.launcher.killed
    found = master.until_state(number, "ERROR")
    assert found["error"]["type"] == "TrialHung"
    assert "reported nothing for 1 s" in found["error"]["message"]
    (trial,) = master.get(f"/experiments/{number}/trials")
    assert trial["restarts"] == 1
    told = str(master.get(f"/trials/{trial['id']}/logs"))
    assert "Nothing was reported for" in told
    assert "most recent call first" in told


def test_a_run_that_hangs_is_not_tried_again_where_that_is_said(master: Master) -> None:
    number = master.create({"watchdog": {"minutes": 0.01, "action": "end"}})["id"]
    (job,) = master.world.wait_for_jobs(1)
    Worker(master, job).start()
    found = master.until_state(number, "ERROR")
    assert found["error"]["type"] == "TrialHung"
    assert len(master.world.jobs) == 1


def test_a_stopped_worker_is_told_and_that_it_goes_on(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.master.flow.watchdog.CONTACT_SECONDS", 0.2)
    monkeypatch.setattr(watching, "CONTACT_SECONDS", 0.2)
    number = master.create()["id"]
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    master.world.stopped[job.run_id] = [4711]
    path = f"/experiments/{number}"
    found = master.until(path, lambda found: found["waits_for"])
    assert found["waits_for"] == "its process 4711, which is stopped by a signal (`kill -CONT 4711` lets it go on)"
    master.world.stopped.clear()
    worker.train(1, 2)
    master.until(path, lambda found: (worker.send(), not found["waits_for"])[1])
    told = str(master.get(f"/trials/{job.trial_id}/logs"))
    assert "Its process 4711 is stopped by a signal (SIGSTOP)" in told
    assert "Its process goes on." in told
