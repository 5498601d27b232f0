"""What the store promises of system metrics, on every kind of database; and what a master does with them."""

from __future__ import annotations

from typing import Any

import pytest
from master_parts import Master, Worker
from store_parts import Fixture

from det_native.errors import FencedError, NotFoundError
from det_native.master.store import system, trials
from det_native.master.store.database import Database
from det_native.schema.ranks import rank_folder
from det_native.schema.rest import SystemSample
from det_native.schema.system_samples import MOST_SAMPLES, LeftSamples

NOW = 1_800_000_000.0


@pytest.fixture
def fixture(database: Database) -> Fixture:
    """Give an experiment with a trial."""
    return Fixture(database)


def report(*samples: tuple[float, int, float]) -> dict[str, Any]:
    made = [{"time": NOW + time, "rank": rank, "metrics": {"cpu_percent": value}} for time, rank, value in samples]
    return {"type": "system", "samples": made}


def shown(fixture: Fixture, trial_id: int | None = None, **options: int) -> list[tuple[float, int, float]]:
    with fixture.database.read() as connection:
        found = system.read(connection, trial_id or fixture.trial_id, **options)
    return [(round(each.time - NOW, 3), each.rank, each.metrics["cpu_percent"]) for each in found]


def test_samples_are_stored_once_whatever_comes_again(fixture: Fixture) -> None:
    run = fixture.run()
    first = {"seq": 1, **report((1, 0, 10.0), (1.5, 1, 20.0))}
    assert run.say_raw(first).through == 1
    assert run.say_raw(first).through == 1
    assert run.say_raw({"seq": 2, **report((1.5, 1, 99.0), (2, 0, 30.0))}).through == 2
    assert shown(fixture) == [(1.0, 0, 10.0), (1.5, 1, 20.0), (2.0, 0, 30.0)]


def test_a_trial_that_continues_keeps_what_it_used_before(fixture: Fixture) -> None:
    old = fixture.run()
    old.say(report((1, 0, 10.0), (2, 0, 20.0)))
    new = fixture.run(start_batch=5)
    with pytest.raises(FencedError):
        old.say(report((3, 0, 99.0)))
    new.say(report((1.5, 0, 15.0), (4, 0, 40.0)))  # the clock of the machine was set back meanwhile
    assert shown(fixture) == [(1.0, 0, 10.0), (1.5, 0, 15.0), (2.0, 0, 20.0), (4.0, 0, 40.0)]


def test_samples_are_no_batches(fixture: Fixture) -> None:
    run = fixture.run()
    run.say({"type": "started", "batch": 0}, report((1, 0, 10.0)))
    with fixture.database.read() as connection:
        assert trials.get(connection, fixture.trial_id).batches == 0


def test_of_a_long_trial_there_are_never_more_than_so_many(fixture: Fixture) -> None:
    run = fixture.run()
    for hour in range(5):
        begin = hour * 900
        run.say(report(*((begin + step, 0, float(hour)) for step in range(900))), report((begin, 1, 1.0)))
        assert MOST_SAMPLES // 2 - 50 <= len([rank for _, rank, _ in shown(fixture) if rank == 0]) <= MOST_SAMPLES
    found = [(time, value) for time, rank, value in shown(fixture) if rank == 0]
    assert found[-1] == (4499.0, 4.0)
    for hour in range(5):  # evenly over all of the time
        mine = [value for time, value in found if hour * 900 + 60 <= time < hour * 900 + 840]
        assert len(mine) > 70
        assert set(mine) == {float(hour)}
    assert len([rank for _, rank, _ in shown(fixture) if rank == 1]) == 5
    run.say(report((4499, 0, 99.0), (4500, 0, 5.0)))
    assert shown(fixture)[-1] == (4500.0, 0, 5.0)
    assert 99.0 not in [value for _, _, value in shown(fixture)]


def test_a_reader_may_want_fewer(fixture: Fixture) -> None:
    fixture.run().say(report(*((step, rank, 1.0) for step in range(400) for rank in (0, 1))))
    assert len(shown(fixture, points=50)) == 100
    assert shown(fixture, points=50)[-1] == (399.0, 1, 1.0)


def test_another_trial_has_its_own(fixture: Fixture) -> None:
    fixture.run().say(report((1, 0, 10.0)))
    other = fixture.add_trial(1)
    fixture.run(trial_id=other).say(report((1, 0, 20.0)))
    assert shown(fixture) == [(1.0, 0, 10.0)]
    assert shown(fixture, other) == [(1.0, 0, 20.0)]
    with pytest.raises(NotFoundError):
        shown(fixture, 77)


@pytest.mark.parametrize(
    "sample",
    [
        {"time": NOW, "rank": -1, "metrics": {}},
        {"time": -1, "rank": 0, "metrics": {}},
        {"time": 1e300, "rank": 0, "metrics": {}},
        {"time": NOW, "rank": 0, "metrics": {"cpu_percent": float("nan")}},
        {"time": NOW, "rank": 0, "metrics": {str(number): 1.0 for number in range(201)}},
    ],
)
def test_what_is_no_sample_is_refused(sample: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SystemSample.model_validate(sample)


# A master around it, with a launcher without processes.

TWO = {"resources": {"slots_per_trial": 2}}


@pytest.mark.slow
def test_a_master_tells_what_its_trials_use(master: Master) -> None:
    number = master.create(TWO)["id"]
    (job,) = master.world.wait_for_jobs(1)
    assert job.config["profiling"]["enabled"]
    worker = Worker(master, job)
    worker.start()
    worker.send(report((1, 0, 10.0), (1, 1, 20.0)), report((2, 0, 30.0)))
    path = f"/trials/{job.trial_id}/system"
    told = [
        {"time": NOW + time, "rank": rank, "metrics": {"cpu_percent": value}}
        for time, rank, value in ((1, 0, 10.0), (1, 1, 20.0), (2, 0, 30.0))
    ]
    assert master.get(path) == told
    assert len(master.get(path, points=1)) == 2
    # What the second process has left for the first, which did not live to tell it.
    folder = rank_folder(master.service.places.run(job.run_id), 1)
    folder.mkdir(parents=True)
    left = LeftSamples(folder)
    for time, value in ((1, 20.0), (3, 40.0)):
        left.add(SystemSample(time=NOW + time, rank=1, metrics={"cpu_percent": value}))
    worker.train(1, 100)
    worker.validate(100, loss=0.5)
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    master.until(path, lambda found: len(found) == 4)
    assert master.get(path)[-1] == {"time": NOW + 3, "rank": 1, "metrics": {"cpu_percent": 40.0}}
    assert "system" not in str(master.get(f"/experiments/{number}/curves"))
    assert master.client.get("/api/v1/trials/99/system").status_code == 404


@pytest.mark.slow
def test_a_trial_that_only_uses_its_machine_hangs_all_the_same(master: Master) -> None:
    number = master.create({"watchdog": {"minutes": 0.01, "action": "end"}})["id"]
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    for second in range(1, 10_000):
        answer = worker.post({"seq": worker.seq + 1, **report((second, 0, 100.0))})
        if answer.status_code != 200:  # its run has ended
            break
        worker.seq += 1
    assert answer.status_code == 409
    assert master.until_state(number, "ERROR")["error"]["type"] == "TrialHung"


@pytest.mark.slow
def test_on_a_full_disk_samples_are_lost_and_nothing_waits_behind_them(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = master.create()["id"]
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 100)
    worker.validate(100, loss=0.5)
    worker.send(report((1, 0, 10.0)))
    for module in ("service", "reserve"):
        monkeypatch.setattr(f"det_native.master.{module}.free_bytes", lambda path: 0)
    master.service._reserve.held = False
    refused = worker.post({"seq": worker.seq + 1, "type": "metrics", "kind": "training", "batches": [], "metrics": {}})
    assert refused.status_code == 507
    worker.send(report((2, 0, 20.0)))
    worker.exit(batch=100)
    master.until_state(number, "COMPLETED")
    assert [each["time"] for each in master.get(f"/trials/{job.trial_id}/system")] == [NOW + 1]
