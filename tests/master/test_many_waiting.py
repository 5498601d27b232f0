"""Many experiments that wait: a pass of the scheduler asks the store the same few questions, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, running_master
from sqlalchemy import event

from det_native.master.flow import scheduling


@contextmanager
def statements(master: Master) -> Iterator[list[str]]:
    """Give the statements that the store executes in the block."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    engine = master.service.database._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def calm(master: Master) -> None:
    """Wait until the decision thread has nothing more to tell."""
    service = master.service
    while service._thread.call(lambda: service._unscheduled or service._scheduling.untold).result():
        pass


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Master]:
    """Give a master whose two slots are taken."""
    with running_master(tmp_path / "home") as master:
        for _ in range(2):
            master.create()
        master.world.wait_for_jobs(2)
        yield master


def pass_of(master: Master) -> list[str]:
    """Return the statements of one pass of the scheduler that finds nothing new."""
    calm(master)
    with statements(master) as seen:
        master.service._thread.call(master.service._scheduling.schedule).result()
    return [statement for statement in seen if statement.startswith(("SELECT", "UPDATE", "INSERT"))]


def test_a_pass_asks_as_much_with_twelve_waiting_as_with_three(crowded: Master) -> None:
    for _ in range(3):
        crowded.create()
    few = pass_of(crowded)
    for _ in range(9):
        crowded.create()
    assert len(pass_of(crowded)) == len(few) <= 4


def test_many_are_told_what_they_wait_for_a_few_in_each_transaction(crowded: Master) -> None:
    for _ in range(2 * scheduling.TOLD_AT_ONCE):
        crowded.create()
    calm(crowded)
    service = crowded.service
    told = crowded.get("/experiments")[0]["waits_for"]
    assert told == "1 of 2 slots: #1 and #2 have them"

    def say_else() -> int:
        waits = service._scheduling
        waits._waits_now = dict.fromkeys(waits._waits_now, "something else")
        with statements(crowded) as seen:
            waits.tell()
        return sum(statement.startswith("INSERT INTO events") for statement in seen)

    assert service._thread.call(say_else).result() == scheduling.TOLD_AT_ONCE
    calm(crowded)
    waiting = crowded.get("/experiments", state="Queued")
    assert [each["waits_for"] for each in waiting] == ["something else"] * 2 * scheduling.TOLD_AT_ONCE


def test_who_waits_no_longer_is_told_before_the_others(crowded: Master) -> None:
    for _ in range(2 * scheduling.TOLD_AT_ONCE):
        crowded.create()
    calm(crowded)
    service = crowded.service

    def end_the_last_wait() -> str:
        waits = service._scheduling
        last = max(waits._waits_now)
        waits._waits_now = {number: "something else" for number in waits._waits_now if number != last}
        waits.tell()
        return str(crowded.get(f"/experiments/{last}")["waits_for"])

    assert service._thread.call(end_the_last_wait).result() == ""
