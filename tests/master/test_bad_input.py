"""What is impossible, or far too large: a status code and a sentence, and the master goes on in little memory."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from master_parts import Master, Worker, configuration

from det_native import PROTOCOL

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
