"""Schedules run notebooks at their time, once each, over restarts of the master; the clock is the test's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, running_master

from det_native.client.command import cli
from det_native.master.flow.schedules import next_time
from det_native.master.store import schedules as store
from det_native.notebook_runs.folders import list_runs
from det_native.notebook_runs.start import follow_run
from det_native.schema.home import Home
from det_native.schema.query.moments import stored
from det_native.schema.schedules import Timing

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


def home_of(master: Master) -> Path:
    """Return the folder of a master."""
    return master.service.places.home


def write_notebook(master: Master, source: str = "print(1)") -> Path:
    """Write a notebook of one cell beside the home."""
    path = home_of(master) / "work" / "nightly.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    return path


def ask(master: Master, timing: dict[str, Any], source: str = "print(1)", **fields: Any) -> Any:
    request = {"path": str(write_notebook(master, source)), **fields.pop("request", {})}
    return master.client.post("/api/v1/schedules", json={"timing": timing, "request": request, **fields})


def made(master: Master, timing: dict[str, Any], source: str = "print(1)", **fields: Any) -> dict[str, Any]:
    answer = ask(master, timing, source, **fields)
    assert answer.status_code == 201, answer.text
    schedule: dict[str, Any] = answer.json()
    return schedule


def at(master: Master, clock: Clock, moment: datetime) -> list[int]:
    """Let it become a time, and return the runs that there are."""
    clock.now = moment
    master.service.schedules.begin_due()
    return sorted(run.id for run in list_runs(Home(home_of(master))))


def end(master: Master, number: int) -> None:
    follow_run(Home(home_of(master)), number, lambda _: None)


def end_all(master: Master) -> None:
    for run in list_runs(Home(home_of(master))):
        end(master, run.id)


def test_once_at_a_time(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"at": "2030-03-05T13:00:00+00:00"}, name="once")
    assert schedule["next"] == "2030-03-05T13:00:00.000Z"
    assert at(timed, clock, BEGIN + timedelta(minutes=59)) == []
    [number] = at(timed, clock, BEGIN + timedelta(minutes=60, seconds=1))
    end(timed, number)
    [run] = list_runs(Home(home_of(timed)))
    assert (run.state, run.schedule) == ("COMPLETED", schedule["id"])
    ended = timed.get(f"/schedules/{schedule['id']}")
    assert (ended["state"], ended["last_run"], ended["next"]) == ("COMPLETED", number, None)
    assert at(timed, clock, BEGIN + timedelta(days=9)) == [number]
    assert timed.get("/schedules") == []
    assert [schedule["id"] for schedule in timed.get("/schedules", all=True)] == [schedule["id"]]


def test_again_and_again_but_not_while_the_last_run_goes_on(timed: Master, clock: Clock) -> None:
    source = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)"
    schedule = made(timed, {"every": "1h"}, source)
    assert at(timed, clock, BEGIN + timedelta(hours=1)) == [1]
    assert at(timed, clock, BEGIN + timedelta(hours=2)) == [1]
    assert timed.get("/schedules")[0]["last_outcome"].endswith("of 1")
    assert "run 1, the one before, went on" in timed.get(f"/schedules/{schedule['id']}")["error"]
    (home_of(timed) / "work" / "go").touch()
    end(timed, 1)
    assert timed.get("/schedules")[0]["last_outcome"] == "completed"
    assert at(timed, clock, BEGIN + timedelta(hours=3)) == [1, 2]
    after = timed.get(f"/schedules/{schedule['id']}")
    assert (after["error"], after["submitted"], after["next"]) == ("", 2, stored(BEGIN + timedelta(hours=4)))
    end_all(timed)


@pytest.mark.long
def test_runs_that_may_overlap_do(timed: Master, clock: Clock) -> None:
    source = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)"
    made(timed, {"every": "1h"}, source, overlap=True)
    assert at(timed, clock, BEGIN + timedelta(hours=1)) == [1]
    assert at(timed, clock, BEGIN + timedelta(hours=2)) == [1, 2]
    (home_of(timed) / "work" / "go").touch()
    end_all(timed)


def test_a_time_that_was_missed_is_made_up_for_once_if_it_is_not_long_ago(tmp_path: Path, clock: Clock) -> None:
    home = tmp_path / "home"
    with scheduling(home, clock) as master:
        hourly = made(master, {"every": "10min"})
        nightly = made(master, {"every": "0 3 * * *", "timezone": "UTC"})
    clock.now = datetime(2030, 3, 6, 3, 35, tzinfo=UTC)
    with scheduling(home, clock) as master:
        # Of the many times of the first schedule, the last hour's first is what it waited for: long ago.
        assert at(master, clock, clock.now) == [1]
        late = master.get(f"/schedules/{nightly['id']}")
        assert late["submitted"] == 1
        assert "Run late" in late["error"]
        missed = master.get(f"/schedules/{hourly['id']}")
        assert missed["submitted"] == 0
        assert "left out" in missed["error"]
        assert missed["next"] == "2030-03-06T03:40:00.000Z"
        end_all(master)


@pytest.mark.long
def test_a_master_that_ends_before_it_notes_a_run_begins_it_once(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"}, overlap=True)
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1
    end(timed, 1)
    with timed.service.database.write() as transaction:
        store.change(transaction, schedule["id"], next=schedule["next"], submitted=0, last_run=None)
    assert len(at(timed, clock, BEGIN + timedelta(hours=1))) == 1


def test_schedules_are_paused_resumed_and_cancelled(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"})
    path = f"/api/v1/schedules/{schedule['id']}"
    assert timed.client.post(f"{path}/pause").json()["state"] == "PAUSED"
    assert at(timed, clock, BEGIN + timedelta(hours=3)) == []
    assert timed.client.post(f"{path}/resume").json()["next"] == stored(BEGIN + timedelta(hours=4))
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
        ({"every": "0 3 * * 5-1"}, "the days 5-1 end before they begin"),
        ({"every": "0 3 * * 8"}, "is no line of cron"),
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


def test_a_notebook_that_cannot_run_is_refused_when_the_schedule_is_made(timed: Master) -> None:
    for request, sentence in (
        ({"path": "/nowhere/nb.ipynb"}, "path must be the absolute path of a notebook"),
        ({"kernel": "nope"}, "Kernel 'nope' is not installed"),
        ({"parameters": {"lr": 1}}, "no cell tagged 'parameters'"),
        ({"content": "{}"}, "is not a notebook of format 4"),
    ):
        answer = ask(timed, {"every": "1h"}, request=request)
        assert answer.status_code == 400
        assert sentence in answer.text
    assert timed.get("/schedules") == []
    assert timed.client.get("/api/v1/schedules/7").status_code == 404


def test_a_run_that_cannot_begin_at_its_time_is_told_and_tried_the_next_time(timed: Master, clock: Clock) -> None:
    schedule = made(timed, {"every": "1h"})
    (home_of(timed) / "work" / "nightly.ipynb").unlink()
    assert at(timed, clock, BEGIN + timedelta(hours=1)) == []
    after = timed.get(f"/schedules/{schedule['id']}")
    assert "No run began at" in after["error"]
    assert "cannot be read" in after["error"]
    assert after["state"] == "ACTIVE"


def test_schedules_are_listed_described_and_cancelled_from_the_command_line(
    timed: Master, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_TOKEN", timed.token)

    def det(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--master", str(timed.client.base_url), "schedule", *words])

    daily = {"every": "0 3 * * *", "timezone": "Europe/Zurich"}
    schedule = made(timed, daily, "raise ValueError('broken data')", name="nightly")
    number = str(schedule["id"])
    listed = det("list").output
    assert "nightly" in listed
    assert "every 0 3 * * * (Europe/Zurich)" in listed
    assert "nightly" in det("describe", number).output
    assert f'"id": {number}' in det("list", "--json").output
    [run] = at(timed, clock, datetime(2030, 3, 6, 2, 0, 30, tzinfo=UTC))
    end(timed, run)
    assert f"{run}: failed: Cell 1 of 1 raised ValueError: broken data" in det("list").output
    assert det("pause", number).exit_code == 0
    assert det("resume", number).exit_code == 0
    assert det("cancel", number).exit_code == 0
    assert "nightly" not in det("list").output
    assert "nightly" in det("list", "--all").output
    assert "it cannot be canceled" in str(det("cancel", number).exception)


@pytest.mark.parametrize(
    ("days", "weekdays"),
    [("0", {6}), ("7", {6}), ("1-5", {0, 1, 2, 3, 4}), ("0-2", {6, 0, 1}), ("1-6/2", {0, 2, 4}), ("mon,6", {0, 5})],
)
def test_days_of_the_week_count_from_sunday_as_crons_do(days: str, weekdays: set[int]) -> None:
    timing = Timing(every=f"0 3 * * {days}", timezone="UTC")
    moment, seen = BEGIN, set()
    for _ in range(14):
        after = next_time(timing, moment, BEGIN)
        assert after is not None
        seen.add(after.weekday())
        moment = after
    assert seen == weekdays


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
