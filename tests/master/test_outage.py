"""The file system of a master's folder turns read-only: told where experiments are looked at, and over by itself."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from master_parts import Master, Worker, running_master
from small_disks import FailingDisk, failing_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with failing_disk(tmp_path / "failing") as mounted:
        yield mounted


@pytest.fixture
def master(disk: FailingDisk) -> Iterator[Master]:
    with running_master(disk.path / "home") as running:
        yield running


def listen(master: Master, heard: list[dict[str, Any]], wanted: threading.Event) -> None:
    """Keep the events of a stream until it ends."""
    with suppress(httpx.HTTPError), master.client.stream("GET", "/api/v1/events", params={"tail": True}) as stream:
        wanted.set()
        for line in stream.iter_lines():
            if line.startswith("data:"):
                heard.append(json.loads(line.removeprefix("data:")))


def until(heard: list[dict[str, Any]], said: bool) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while True:
        for event in list(heard):
            if event["type"] == "experiment" and ("cannot write" in event["data"]["notice"]) is said:
                return event
        assert time.monotonic() < deadline, heard
        time.sleep(0.02)


def test_a_read_only_folder_is_told_everywhere_and_the_master_goes_on_by_itself(
    master: Master, disk: FailingDisk
) -> None:
    experiment = master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    heard: list[dict[str, Any]] = []
    listening = threading.Event()
    reader = threading.Thread(target=listen, args=(master, heard, listening), daemon=True)
    reader.start()
    assert listening.wait(30)

    disk.fail()
    # Nobody asks for anything: the master sees it, and says it to those who watch.
    notice = until(heard, True)["data"]["notice"]
    assert notice.startswith(f"the master cannot write to {disk.path / 'home'} since 20")
    assert master.get(f"/experiments/{experiment['id']}")["notice"] == notice
    assert master.get("/experiments")[0]["notice"] == notice
    since = notice.partition(" since ")[2].partition(" ")[0]
    assert f" since {since} (" in master.get("/master")["outage"]

    refused = master.client.post(f"/api/v1/experiments/{experiment['id']}/pause")
    assert refused.status_code == 503
    assert f" since {since} (" in refused.json()["error"]
    assert "the master goes on by itself" in refused.json()["error"]
    report = {"seq": worker.seq + 1, "type": "metrics", "kind": "training", "batches": [1], "metrics": {"loss": [1.0]}}
    assert worker.post(report).status_code == 503

    heard.clear()
    disk.mend()
    until(heard, False)
    assert master.get("/master")["outage"] == ""
    assert master.get("/experiments")[0]["notice"] == ""
    assert isinstance(worker.post(report), httpx.Response)
    worker.seq += 1
    worker.train(2, 100)
    worker.validate(100, loss=0.5)
    worker.exit(batch=100)
    master.until_state(experiment["id"], "COMPLETED")
    assert len(master.get(f"/trials/{job.trial_id}/metrics", kind="training")) == 100


def test_a_master_without_work_tells_it_to_who_asks(master: Master, disk: FailingDisk) -> None:
    assert master.get("/master")["outage"] == ""
    disk.fail()
    cleaned = master.client.post("/api/v1/master/clean")
    assert cleaned.status_code == 503
    assert f"cannot write to {disk.path / 'home'} since " in cleaned.json()["error"]
    deadline = time.monotonic() + 30
    while not (outage := master.get("/master")["outage"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert str(disk.path / "home") in outage
    disk.mend()
    while master.get("/master")["outage"]:
        assert time.monotonic() < deadline + 30
        time.sleep(0.02)
