"""The thread of decisions: in order, again after a full disk, and never ended by a fault."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError

from det_native.errors import MasterError
from det_native.master.flow import thread as module
from det_native.master.flow.thread import DecisionThread

DEADLINE = 60.0


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> Iterator[DecisionThread]:
    """Give a thread that tries again soon."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    running = DecisionThread(tick=lambda: None, busy=lambda: False, waiter=None)
    running.start()
    yield running
    running.close()


def test_steps_run_in_order_and_their_results_come_back(decisions: DecisionThread) -> None:
    seen: list[int] = []
    futures = [decisions.call(lambda number=number: seen.append(number) or number) for number in range(50)]  # type: ignore[misc]
    assert [future.result(DEADLINE) for future in futures] == list(range(50))
    assert seen == list(range(50))


def test_a_step_that_the_database_refuses_is_tried_again_before_all_others(decisions: DecisionThread) -> None:
    attempts: list[str] = []

    def refused_twice() -> None:
        attempts.append("first")
        if len(attempts) < 3:
            raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    done = threading.Event()
    decisions.post(refused_twice)
    decisions.post(lambda: attempts.append("second"))
    decisions.post(done.set)
    assert done.wait(DEADLINE)
    assert attempts == ["first", "first", "first", "second"]


def test_what_somebody_waits_for_is_done_while_a_step_is_refused(decisions: DecisionThread) -> None:
    refused, room, done = threading.Event(), threading.Event(), threading.Event()

    def step() -> None:
        refused.set()
        if not room.is_set():
            raise OperationalError("INSERT", {}, Exception("database or disk is full"))
        done.set()

    decisions.post(step)
    assert decisions.call(lambda: "paused").result(DEADLINE) == "paused"  # before or after the first attempt
    assert refused.wait(DEADLINE)
    assert decisions.call(lambda: "killed").result(DEADLINE) == "killed"
    assert not done.is_set()
    room.set()
    assert done.wait(DEADLINE)


def test_room_is_made_for_a_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    made: list[str] = []

    def step() -> str:
        if not made:
            raise OperationalError("INSERT", {}, full)
        return "stored"

    running = DecisionThread(lambda: None, lambda: False, None, make_room=lambda: bool(made.append("room") or True))
    running.start()
    assert running.call(step).result(DEADLINE) == "stored"
    assert made == ["room"]
    running.close()


def test_a_fault_ends_only_its_own_step(decisions: DecisionThread) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    decisions.post(fail)
    with pytest.raises(ZeroDivisionError):
        decisions.call(fail).result(DEADLINE)
    assert decisions.call(threading.current_thread).result(DEADLINE).name == "det-master"


def test_after_the_end_nothing_is_promised() -> None:
    ended = DecisionThread(tick=lambda: None, busy=lambda: False, waiter=None)
    ended.start()
    ended.close()
    with pytest.raises(MasterError, match="shutting down"):
        ended.call(lambda: None).result(DEADLINE)
