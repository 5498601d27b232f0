"""What is impossible, or far too large: a status code and a sentence, and the master goes on in little memory."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from master_parts import Master, Worker, configuration

from det_native import PROTOCOL
from det_native.schema import rest

pytestmark = pytest.mark.slow  # a whole master for each test

DOUBLE = {"type": "double", "minval": 0, "maxval": 1, "count": 100}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"hyperparameters": {"x": {"type": "double", "minval": 2, "maxval": 1}}}, "hyperparameters.x"),
        ({"hyperparameters": {"x": {"type": "categorical", "vals": []}}}, "hyperparameters.x"),
        ({"searcher": {"name": "grid"}, "hyperparameters": {"x": DOUBLE, "y": DOUBLE}}, "10,000"),
        ({"searcher": {"name": "random", "max_trials": 0}}, "searcher.max_trials"),
        ({"resources": {"slots_per_trial": 3}}, "3 slots for each trial, but the cluster has 2 slots"),
        ({"resources": {"priority": 100}}, "resources.priority"),
        ({"resources": {"slots_per_trial": 2, "max_slots": 1}}, "max_slots"),
    ],
)
def test_what_cannot_run_is_refused_at_submit(master: Master, config: dict[str, Any], told: str) -> None:
    config["hyperparameters"] = {"global_batch_size": 32} | config.get("hyperparameters", {})
    body = {"protocol": PROTOCOL, "config": configuration(**config), "bundle_id": master.bundle()}
    answer = master.client.post("/api/v1/experiments", json=body)
    assert answer.status_code in (400, 422), answer.text
    assert told in answer.text
    assert master.get("/experiments") == []


@pytest.mark.long
def test_a_metric_with_a_name_of_ten_kilobytes_is_kept(master: Master) -> None:
    name = "m" * 10_000
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 2, **{name: [0.5, 0.25]})
    assert master.get("/trials/1/metrics") == [
        {"batch": 1, "metrics": {name: 0.5}},
        {"batch": 2, "metrics": {name: 0.25}},
    ]


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(master: Master) -> None:
    address = urlsplit(str(master.client.base_url))
    before = psutil.Process().memory_info().rss
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        head = (
            f"POST /api/v1/experiments HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {master.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n"
        )
        line.sendall(head.encode())
        answer = line.makefile("rb").readline()
    assert b" 413 " in answer
    assert psutil.Process().memory_info().rss - before < 50_000_000
    assert master.get("/master")["active_experiments"] == 0


def test_a_body_of_unknown_length_is_not_kept_beyond_the_limit(master: Master) -> None:
    address = urlsplit(str(master.client.base_url))
    before = psutil.Process().memory_info().rss
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        head = (
            f"POST /api/v1/experiments HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {master.token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        line.sendall(head.encode())
        piece = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        for _ in range(1000):  # a client that sends all of it is told the reason, and not cut off
            line.sendall(piece)
            assert psutil.Process().memory_info().rss - before < 100_000_000
        answer = b""
        while b"The body is larger than 8 MiB." not in answer:
            more = line.recv(65_536)
            assert more, answer
            answer += more
        assert answer.startswith(b"HTTP/1.1 413 ")
    assert master.get("/master")["active_experiments"] == 0


def test_names_that_are_too_long_together_are_refused_in_a_sentence(master: Master) -> None:
    worker = begun(master)
    names = {f"{number}" + "m" * 10_000: [0.5] for number in range(30)}
    answer = worker.post({"seq": 2, "type": "metrics", "kind": "training", "batches": [1], "metrics": names})
    assert answer.status_code == 422
    assert "at most 256,000" in answer.text
    assert len(answer.text) < 10_000
    worker.train(1, 1)


@pytest.mark.long
def test_many_rows_with_long_names_are_read_back_in_little_memory(master: Master) -> None:
    worker = begun(master)
    names = [f"{number:02d}" + "m" * 10_000 for number in range(25)]
    for batch in range(1, 301):  # rows of 75 MB in all
        worker.train(batch, batch, **{name: [float(batch)] for name in names})
    before = psutil.Process().memory_info().rss
    found: list[int] = []
    path = "/trials/1/metrics"
    while page := master.get(path, after_batch=found[-1] if found else -1):
        found += [row["batch"] for row in page]
        assert len(page) < 200, "an answer has a limit, whatever the rows"
    assert found == list(range(1, 301))
    assert [len(event.data["metrics"]) for event in kept_events(master)] == [0] * 300
    assert psutil.Process().memory_info().rss - before < 400_000_000  # of both sides, which are one process here


def begun(master: Master) -> Worker:
    """Return the worker of a new experiment."""
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    return worker


def kept_events(master: Master) -> list[rest.Event]:
    """Return what the master keeps of metrics for readers of events."""
    newest = master.service.broker.newest("user", 0)
    assert newest is not None
    return [told.event for told in newest[0] if told.event.type == "metrics"]
