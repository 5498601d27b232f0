"""The thread of decisions: in order, again after a full disk, and never ended by a fault."""

from __future__ import annotations

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

    decisions.post(refused_twice)
    decisions.call(lambda: attempts.append("second")).result(DEADLINE)
    assert attempts == ["first", "first", "first", "second"]


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
