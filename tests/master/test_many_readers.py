"""Many who read the events of many runs: each looks at what is new only, and all are sent the same text."""

from __future__ import annotations

import asyncio

import pytest
from master_parts import Master, Worker

from det_native.master.api.routes import events as event_routes
from det_native.master.events.broker import Broker
from det_native.master.service import REPORTS_PER_SECOND
from det_native.schema.rest import Event


class Owner(str):
    """Counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Owner.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def event(number: int) -> Event:
    return Event(id=number, type="metrics", experiment_id=1, trial_id=1, data={"kind": "training", "batch": number})


def test_a_reader_looks_at_new_events_only_and_all_get_one_text() -> None:
    broker = Broker()
    broker.publish([(Owner("user"), event(number)) for number in range(1, 1001)])
    Owner.compared = 0
    found = [broker.newest("user", 997) for _ in range(50)]
    assert Owner.compared == 50 * 3
    assert all(each is not None and [told.event.id for told in each[0]] == [998, 999, 1000] for each in found)
    assert len({id(told.frame) for each in found if each is not None for told in each[0]}) == 3


def test_what_happens_at_about_the_same_time_is_sent_at_once(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    broker = master.service.broker

    async def follow() -> bytes:
        start = broker.newest("user", 0)
        assert start is not None
        stream = event_routes._follow(master.service, "user", start[1], None)
        await asyncio.to_thread(worker.train, 1, 1)
        assert b"event: metrics" in await anext(stream)
        for batch in range(2, 12):
            await asyncio.to_thread(worker.train, batch, batch)
        piece = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return piece

    piece = asyncio.run(follow())
    assert [line for line in piece.split(b"\n") if line == b"event: metrics"] == [b"event: metrics"] * 10


def until_busy(master: Master, slots: int) -> None:
    """Wait until so many runs are known to live."""
    master.until("/master", lambda info: sum(slot["trial_id"] is not None for slot in info["slots"]) == slots)


def test_the_more_runs_there_are_the_longer_each_gathers_its_rows(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    first = Worker(master, job)
    until_busy(master, 1)
    assert first.start().interval == pytest.approx(1 / REPORTS_PER_SECOND)
    master.create()
    until_busy(master, 2)
    assert first.train(1, 1).interval == pytest.approx(2 / REPORTS_PER_SECOND)
    assert first.send().interval == pytest.approx(2 / REPORTS_PER_SECOND)
