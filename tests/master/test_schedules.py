"""Schedules submit at their time, once each, over restarts of the master; the clock is the test's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apscheduler.triggers.cron import CronTrigger
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, Worker, configuration, running_master

from det_native import PROTOCOL
from det_native.client.command import cli
from det_native.master.flow.schedules import next_time
from det_native.master.store import schedules as store
from det_native.schema.schedules import Timing, utc

BEGIN = datetime(2030, 3, 5, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def scheduling(home: Path, clock: Clock) -> Iterator[Master]:
    """Run a master whose schedules follow the clock of the test, and submit when it says so."""
    with running_master(home) as master:
        master.service.schedules.close()
        master.service.schedules.clock = clock
        yield master


@pytest.fixture
def clock() -> Clock:
    """Give a clock."""
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Master]:
    """Give a master with the test's clock."""
    with scheduling(tmp_path / "home", clock) as master:
        yield master


CRON_FIELD = st.sampled_from(
    [
        *"*07a?",
        "1",
        "5",
        "24",
        "31",
        "32",
        "59",
        "60",
        "*/5",
        "*/0",
        "*/24",
        "1-5",
        "1-5/2",
        "1,3",
        "jan",
        "jan-mar",
        "SUN",
        "last",
        "1,,2",
    ]
)


@given(st.lists(CRON_FIELD, min_size=5, max_size=5))
def test_what_a_client_refuses_of_cron_the_master_cannot_keep_to(fields: list[str]) -> None:
    line = " ".join(fields)
    try:
        CronTrigger.from_crontab(line)
    except ValueError:
        return
    assert Timing(every=line).every == line


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("0 25 * * *", "'25' is no hour"),
        ("60 0 * * *", "'60' is no minute"),
        ("0 0 32 * *", "'32' is no day:"),
        ("0 0 * 13 *", "'13' is no month"),
        ("0 0 * * 7", "'7' is no day of the week"),
        ("a 0 * * *", "'a' is no minute"),
        ("*/0 * * * *", "'*/0' is no minute"),
        ("0 */30 * * *", "'*/30' is no hour"),
    ],
)
def test_a_line_of_cron_is_checked_before_any_cell_runs(line: str, what: str, tmp_path: Path) -> None:
    notebook = tmp_path / "night.ipynb"
    notebook.write_text('{"cells": [{"cell_type": "code", "source": "open(\'ran\', \'w\')"}]}')
    refused = CliRunner().invoke(cli, ["submit", str(notebook), "--every", line])
    assert refused.exit_code != 0
    assert f"{line!r} is no line of cron, for {what}" in refused.output + str(refused.exception)
    assert not (tmp_path / "ran").exists()


def ask(master: Master, timing: dict[str, Any], config: dict[str, Any] | None = None, **more: Any) -> Any:
    body = {"protocol": PROTOCOL, "config": configuration(**(config or {})), "bundle_id": master.bundle()}
    return master.client.post("/api/v1/schedules", json={"timing": timing, "body": body, **more})


def made(master: Master, timing: dict[str, Any], config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    answer = ask(master, timing, config, **more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def at(master: Master, clock: Clock, moment: datetime) -> list[int]:
    """Let it become a time, and return the experiments that there are."""
    clock.now = moment
    master.service.schedules.submit_due()
    return sorted(one["id"] for one in master.get("/experiments"))


def end(master: Master, count: int) -> None:
    worker = Worker(master, master.world.wait_for_jobs(count)[-1])
    worker.start()
    worker.complete()
    master.launcher.end(worker.job.run_id, 0)
    master.until_state(worker.job.experiment_id, "COMPLETED")


def test_once_at_a_time(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"at": "2030-03-05T13:00:00+00:00"}, name="once")
    assert schedule["next"] == "2030-03-05T13:00:00.000Z"
    assert at(timed, clock, BEGIN + timedelta(minutes=59)) == []
    [number] = at(timed, clock, BEGIN + timedelta(minutes=60, seconds=1))
    assert timed.get(f"/experiments/{number}")["labels"] == ["schedule:once"]
    found = timed.get(f"/schedules/{schedule['id']}")
    assert (found["state"], found["last_experiment"], found["next"]) == ("COMPLETED", number, None)
    assert at(timed, clock, BEGIN + timedelta(days=9)) == [number]
    assert timed.get("/schedules") == []
    assert [one["id"] for one in timed.get("/schedules", all=True)] == [schedule["id"]]


def test_again_and_again_but_not_while_the_last_one_runs(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"})
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1
    assert len(at(timed, clock, BEGIN + timedelta(hours=2))) == 1
    assert "experiment 1, the one before, went on" in timed.get(f"/schedules/{schedule['id']}")["error"]
    end(timed, 1)
    assert len(at(timed, clock, BEGIN + timedelta(hours=3))) == 2
    found = timed.get(f"/schedules/{schedule['id']}")
    assert (found["error"], found["submitted"], found["next"]) == ("", 2, utc(BEGIN + timedelta(hours=4)))


def test_one_that_may_overlap_does(timed: Master, clock: Clock) -> None:
    made(timed, {"every": "1h"}, overlap=True)
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1
    assert len(at(timed, clock, BEGIN + timedelta(hours=2))) == 2


def test_a_time_that_was_missed_is_made_up_for_once_if_it_is_not_long_ago(tmp_path: Path, clock: Clock) -> None:
    home = tmp_path / "home"
    with scheduling(home, clock) as master:
        hourly = made(master, {"every": "10min"})
        nightly = made(master, {"every": "0 3 * * *", "timezone": "UTC"})
    clock.now = datetime(2030, 3, 6, 3, 35, tzinfo=UTC)
    with scheduling(home, clock) as master:
        # Of the many times of the first one, the last hour's first is what it waited for: long ago.
        assert len(at(master, clock, clock.now)) == 1
        late = master.get(f"/schedules/{nightly['id']}")
        assert late["submitted"] == 1
        assert "Submitted late" in late["error"]
        missed = master.get(f"/schedules/{hourly['id']}")
        assert missed["submitted"] == 0
        assert "left out" in missed["error"]
        assert missed["next"] == "2030-03-06T03:40:00.000Z"


@pytest.mark.long
def test_a_master_that_ends_before_it_notes_a_submission_submits_once(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"}, overlap=True)
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1
    with timed.service.database.write() as transaction:
        store.change(transaction, schedule["id"], next=schedule["next"], submitted=0, last_experiment=None)
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1


def test_schedules_are_paused_resumed_and_cancelled(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"})
    path = f"/api/v1/schedules/{schedule['id']}"
    assert timed.client.post(f"{path}/pause").json()["state"] == "PAUSED"
    assert at(timed, clock, BEGIN + timedelta(hours=3)) == []
    assert timed.client.post(f"{path}/resume").json()["next"] == utc(BEGIN + timedelta(hours=4))
    assert timed.client.delete(path).json()["state"] == "CANCELED"
    assert timed.client.delete(path).status_code == 409
    assert at(timed, clock, BEGIN + timedelta(hours=9)) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("timing", "said"),
    [
        ({"at": "2030-03-05T11:00:00+00:00"}, "that time has passed"),
        ({"at": "tomorrow"}, "at"),
        ({"every": "often"}, "is no time between two submissions"),
        ({"every": "0h"}, "is no time between two submissions"),
        ({"every": "61 * * * *"}, "is no line of cron"),
        ({"every": "5-2 * * * *"}, "is no line of cron"),
        ({"every": "1h", "timezone": "Mars/Olympus"}, "is no time zone"),
        ({}, "needs one of at and every"),
        ({"every": "1h", "at": "2031-01-01T00:00:00Z"}, "needs one of at and every"),
    ],
)
def test_a_wrong_time_is_one_sentence(timed: Master, timing: dict[str, Any], said: str) -> None:
    answer = ask(timed, timing)
    assert answer.status_code in (400, 422)
    assert said in answer.text


def test_an_invalid_configuration_is_refused_when_the_schedule_is_made(timed: Master) -> None:
    for config, said in (
        ({"resources": {"slots_per_trial": 99}}, "resources.slots_per_trial"),
        ({"after": [77]}, "there is no experiment 77"),
        ({"max_restarts": -1}, "max_restarts"),
    ):
        answer = ask(timed, {"every": "1h"}, config)
        assert answer.status_code in (400, 404, 422)
        assert said in answer.text
    assert timed.get("/schedules") == []
    assert timed.client.get("/api/v1/schedules/7").status_code == 404


def test_what_cannot_be_submitted_at_its_time_is_told_and_tried_the_next_time(timed: Master, clock: Clock) -> None:
    first = timed.create()
    schedule = made(timed, {"every": "1h"}, {"after": [first["id"]]})
    timed.client.post(f"/api/v1/experiments/{first['id']}/kill")
    timed.until_state(first["id"], "CANCELED")
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1
    found = timed.get(f"/schedules/{schedule['id']}")
    assert "Nothing was submitted" in found["error"]
    assert "was stopped" in found["error"]
    assert found["state"] == "ACTIVE"


def test_schedules_are_listed_described_and_cancelled_from_the_command_line(
    timed: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_TOKEN", timed.token)

    def det(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--master", str(timed.client.base_url), "schedule", *words])

    schedule = made(timed, {"every": "0 3 * * *", "timezone": "Europe/Zurich"}, name="nightly")
    number = str(schedule["id"])
    listed = det("list").output
    assert "nightly" in listed
    assert "every 0 3 * * * (Europe/Zurich)" in listed
    assert "nightly" in det("describe", number).output
    assert f'"id": {number}' in det("list", "--json").output
    assert det("pause", number).exit_code == 0
    assert det("resume", number).exit_code == 0
    assert det("cancel", number).exit_code == 0
    assert "nightly" not in det("list").output
    assert "nightly" in det("list", "--all").output
    assert "it cannot be canceled" in str(det("cancel", number).exception)


EVERY = ["1h", "3d", "0 3 * * *", "*/7 * * * 1"]
MOMENTS = st.datetimes(datetime(2029, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC))


@given(MOMENTS, st.timedeltas(timedelta(0), timedelta(days=400)), st.sampled_from(EVERY))
def test_the_next_time_is_always_later_and_none_lies_between(created: datetime, passed: timedelta, every: str) -> None:
    timing = Timing(every=every, timezone="UTC")
    after = created + passed
    found = next_time(timing, after, created)
    assert found is not None
    assert found > after
    between = next_time(timing, after + (found - after) / 2, created)
    assert between == found
