"""Who trains and who waits, in the order of the scheduler."""

from __future__ import annotations

import pytest
from master_parts import Master

pytestmark = pytest.mark.slow


def test_the_queue_has_who_holds_slots_first_and_then_who_waits_by_priority(master: Master) -> None:
    first, second, third = (master.create({"resources": {"slots_per_trial": 2}}) for _ in range(3))
    job = master.world.wait_for_jobs(1)[0]
    assert job.experiment_id == first["id"]
    assert master.until("/queue", lambda queue: queue["entries"][0]["held"])["policy"] == "priority"
    path = f"/api/v1/experiments/{third['id']}"
    assert master.client.patch(path, json={"resources": {"priority": 7}}).is_success
    queue = master.until("/queue", lambda queue: queue["entries"][1]["waits_for"])
    assert [entry["id"] for entry in queue["entries"]] == [first["id"], third["id"], second["id"]]
    assert [(entry["priority"], entry["running"], entry["queued"]) for entry in queue["entries"]] == [
        (42, 1, 0),
        (7, 0, 1),
        (42, 0, 1),
    ]
    assert (queue["slots"], queue["free"], queue["more"]) == (2, 0, 0)
    assert queue["entries"][1]["waits_for"].startswith("2 of 2 slots")
    short = master.get("/queue", limit=1)
    assert ([entry["id"] for entry in short["entries"]], short["more"]) == ([first["id"]], 2)
