"""Events over HTTP: no gap, no repeat, an end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from master_parts import Master, Worker

from det_native.client.http_source import _EventConnection
from det_native.client.session import Session
from det_native.master.api.routes import events as event_routes
from det_native.master.events.broker import Broker
from det_native.master.store import events as stored
from det_native.schema.states import ExitReason


@contextmanager
def stream(master: Master, **asked: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """Open a stream; gives its events, each with the id and type of its frame checked."""
    headers = asked.pop("headers", {})
    with master.client.stream("GET", "/api/v1/events", params=asked, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield frames(response)


def frames(response: httpx.Response) -> Iterator[dict[str, Any]]:
    frame: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            frame[name] = value.removeprefix(" ")
        elif "data" in frame:
            event = json.loads(frame["data"])
            assert (frame["id"], frame["event"]) == (str(event["id"]), event["type"])
            yield event
            frame = {}


def take(events: Iterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return [next(events) for _ in range(count)]


def next_of(events: Iterator[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the next event of a kind; the experiment's progress may be told at any time."""
    return next(event for event in events if event["type"] == kind)


@pytest.fixture
def worker(master: Master) -> Worker:
    """Give the worker of a fresh experiment."""
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    return Worker(master, job)


def test_what_happens_is_told_as_it_happens(master: Master, worker: Worker) -> None:
    with stream(master, experiment_id=1) as events:
        before = take(events, 4)
        assert [event["type"] for event in before] == ["experiment", "trial", "trial", "experiment"]
        assert before[0]["data"]["started"] is None
        assert before[3]["data"]["started"], "it is queued no longer, though nothing is reported yet"
        worker.start()
        assert next(events)["data"]["state"] == "RUNNING"
        worker.train(1, 3)
        hint = next_of(events, "metrics")
        assert hint["trial_id"] == 1
        assert hint["data"] == {"kind": "training", "batch": 3, "metrics": {"loss": 1 / 3}}
        uuid = worker.checkpoint(3)
        assert next_of(events, "checkpoint")["data"]["uuid"] == uuid


def test_a_cut_stream_continues_without_gap_or_repeat(master: Master, worker: Worker) -> None:
    worker.start()
    seen: list[int] = []
    for turn in range(4):
        worker.train(turn * 5 + 1, turn * 5 + 5)
        headers = {"Last-Event-ID": str(seen[-1])} if seen else {}
        with stream(master, experiment_id=1, headers=headers) as events:
            seen += [event["id"] for event in take(events, 3 if not seen else 1)]
    worker.train(21, 25)
    with stream(master, after=seen[-1]) as events:
        seen += [event["id"] for event in take(events, 2)]
    with master.service.database.read() as connection:
        everything = [event.id for event in stored.after(connection, "user", 0)]
    assert seen == everything[: len(seen)]


def test_a_reader_that_falls_behind_reads_from_the_store(
    master: Master, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with master.service.database.read() as connection:
        small = Broker(stored.last_id(connection), kept=2)
    monkeypatch.setattr(master.service, "broker", small)
    monkeypatch.setattr(event_routes, "PAGE", 3)
    worker.start()
    with stream(master, experiment_id=1) as events:
        found = [next(events)]
        for batch in range(1, 31):
            worker.train(batch, batch)
        while found[-1]["data"].get("batch") != 30:
            found.append(next(events))
    assert [event["data"]["batch"] for event in found if event["type"] == "metrics"] == list(range(1, 31))
    ids = [event["id"] for event in found]
    assert ids == list(range(ids[0], ids[0] + len(ids)))


def test_only_the_events_of_the_experiment_are_told(master: Master, worker: Worker) -> None:
    master.create()
    master.world.wait_for_jobs(2)
    worker.start()
    with stream(master, experiment_id=2) as events:
        assert {event["experiment_id"] for event in take(events, 3)} == {2}


def test_an_error_is_told_before_the_retry(master: Master, worker: Worker) -> None:
    worker.start()
    worker.exit(ExitReason.USER_ERROR, batch=3, message="boom")
    with stream(master, experiment_id=1) as events:
        types = [event["type"] for event in take(events, 7)]
        assert types.index("error") == 5


def test_streams_end_with_the_master(master: Master, worker: Worker) -> None:
    with stream(master, experiment_id=1) as events:
        take(events, 3)
        ended = threading.Thread(target=lambda: list(events))
        ended.start()
        master.client.post("/api/v1/master/shutdown")
        ended.join(5)
        assert not ended.is_alive()


@pytest.mark.parametrize("headers", [{"Last-Event-ID": "x"}, {"Last-Event-ID": "-1"}])
def test_a_malformed_position_is_refused(master: Master, headers: dict[str, str]) -> None:
    assert master.client.get("/api/v1/events", headers=headers).status_code == 422


def test_the_tail_has_only_what_happens_after_it_was_opened(master: Master, worker: Worker) -> None:
    worker.start()
    worker.train(1, 3)
    with stream(master, experiment_id=1, tail=True) as events:
        uuid = worker.checkpoint(3)
        seen = [next(events)]
        while seen[-1]["type"] != "checkpoint":
            seen.append(next(events))
        assert seen[-1]["data"]["uuid"] == uuid
        # The decision thread may tell of the progress only now; of the training all was told before.
        assert {event["type"] for event in seen[:-1]} <= {"experiment"}


def test_a_stream_whose_connection_is_closed_at_the_same_moment_is_closed_too(master: Master) -> None:
    session = Session(str(master.client.base_url), master.token)
    connection = _EventConnection(session, master.create()["id"], 0)
    # What the thread that reads does at the end of the stream.
    os.close(connection._response.raw._connection.sock.detach())
    connection.close()
