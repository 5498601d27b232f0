"""A Postgres server that crashes under a master at work: it is told, the master goes on by itself, nothing is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest
from master_parts import Master, Worker, running_master
from postgres_server import PostgresServer

from det_native.errors import MasterStartError
from det_native.master.store.database import Database

pytestmark = [pytest.mark.slow, pytest.mark.long]

CRASHES = 2
BATCHES = 250


class Load(threading.Thread):
    """Sends the rows of a training one by one, each again until it is taken, as workers do."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(name="load")
        self.worker = worker
        self.taken = 0
        self.moved = threading.Condition()
        self.refused: list[tuple[int, str]] = []

    def run(self) -> None:
        """Send them all."""
        for batch in range(1, BATCHES + 1):
            report = {"seq": self.worker.seq + 1, "type": "metrics", "kind": "training", "batches": [batch]}
            while (answer := self.worker.post({**report, "metrics": {"loss": [1 / batch]}})).status_code != 200:
                self.refused.append((answer.status_code, answer.text))
            self.worker.seq += 1
            with self.moved:
                self.taken = batch
                self.moved.notify_all()

    def wait_until(self, batch: int) -> None:
        """Wait until a batch is taken."""
        with self.moved:
            assert self.moved.wait_for(lambda: self.taken >= batch, 120), self.refused[-1:]


def test_nothing_that_was_taken_is_lost(postgres: PostgresServer, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    draw = random.Random(seed)
    url = postgres.new_database()
    with running_master(tmp_path / "home", database_url=url) as master:
        experiment = master.create()
        [job] = master.world.wait_for_jobs(1)
        worker = Worker(master, job)
        worker.start(length=BATCHES)
        load = Load(worker)
        load.start()
        for number in range(CRASHES):
            load.wait_until(draw.randrange(number * 100, number * 100 + 60))
            postgres.stop()
            try:
                said = _told(master)
            finally:
                postgres.start()
            assert said.startswith("The master cannot reach its database postgresql")
            assert "Start the database's server; the master goes on by itself" in said
            load.wait_until(number * 100 + 100)
            with pytest.raises(MasterStartError, match="Another master already uses the database"):
                Database(url)
        load.join(120)
        assert {status for status, _ in load.refused} == {503}
        assert any("cannot reach its database" in text for _, text in load.refused)
        master.until("/master", lambda answer: answer["outage"] == "")
        rows = master.get(f"/trials/{job.trial_id}/metrics", kind="training", limit=1000)
        assert [row["batch"] for row in rows] == list(range(1, BATCHES + 1))
        worker.validate(BATCHES, loss=0.5)
        worker.exit(batch=BATCHES)
        assert master.until_state(experiment["id"], "COMPLETED")["notice"] == ""


def _told(master: Master) -> Any:
    """Return what a request is told while there is no database."""
    answer = master.client.get("/api/v1/experiments")
    assert answer.status_code == 503, answer.text
    return answer.json()["error"]
