"""Requests in any order, of the user and of workers, honest or not: the master never fails, and keeps its word."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from attack_parts import ANYTHING, assert_refused_or_taken, json_text
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from master_parts import Worker, configuration, running_master

from det_native import PROTOCOL
from det_native.storage.packing import pack

pytestmark = pytest.mark.long  # a whole master for each history

TERMINAL = {"COMPLETED", "CANCELED", "ERROR"}
ACTIONS = ["pause", "resume", "stop", "kill"]
NUMBERS = st.integers(0, 5)


class Histories(RuleBasedStateMachine):
    """One master and all that is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.ended: dict[int, str] = {}
        self.rows: dict[int, int] = {}
        self.workers: dict[str, Worker] = {}

    @initialize()
    def begin(self) -> None:
        """Start the master, with an experiment."""
        home = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "home"
        self.master = self.stack.enter_context(running_master(home))
        self.bundle = self.master.bundle()
        self.create(2, 0)

    def teardown(self) -> None:
        """Stop it."""
        self.stack.close()

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Ask as the user; the same without a token opens nothing."""
        without = {**more, "headers": {**more.get("headers", {}), "Authorization": ""}}
        stranger = self.master.client.request(method, f"/api/v1{path}", **without)
        assert stranger.status_code == 401
        answer = self.master.client.request(method, f"/api/v1{path}", **more)
        assert_refused_or_taken(answer)
        return answer

    @rule(trials=st.integers(0, 3), restarts=st.integers(-1, 2))
    def create(self, trials: int, restarts: int) -> None:
        config = configuration(searcher={"name": "random", "max_trials": trials}, max_restarts=restarts)
        body = {"protocol": PROTOCOL, "config": config, "bundle_id": self.bundle}
        self.ask("POST", "/experiments", json=body)

    @rule(config=ANYTHING, protocol=st.integers())
    def create_anything(self, config: Any, protocol: int) -> None:
        body = {"protocol": protocol, "config": config, "bundle_id": self.bundle}
        headers = {"Content-Type": "application/json"}
        assert self.ask("POST", "/experiments", content=json_text(body), headers=headers).status_code in (400, 422, 426)

    @rule(number=NUMBERS, action=st.sampled_from(ACTIONS))
    def act(self, number: int, action: str) -> None:
        self.ask("POST", f"/experiments/{number}/{action}")

    @rule(number=NUMBERS, priority=st.integers(-1, 200))
    def change(self, number: int, priority: int) -> None:
        self.ask("PATCH", f"/experiments/{number}", json={"resources": {"priority": priority}})

    @rule(content=st.binary(max_size=50), cut=st.integers(0, 3))
    def upload(self, content: bytes, cut: int) -> None:
        sha256 = hashlib.sha256(content).hexdigest()
        body = b"".join(pack({sha256: content}))
        answer = self.ask("POST", "/blobs", content=body[: len(body) - cut])
        assert (answer.status_code == 200) == (cut == 0)
        if cut == 0:
            assert self.ask("GET", f"/blobs/{sha256}").content == content

    @rule(pick=st.integers(0, 9), report=ANYTHING, honest=st.booleans(), skip=st.integers(-1, 2))
    def report(self, pick: int, report: Any, honest: bool, skip: int) -> None:
        jobs = list(self.master.world.jobs.values())
        if not jobs:
            return
        job = jobs[pick % len(jobs)]
        worker = self.workers.setdefault(job.run_id, Worker(self.master, job))
        wanted = {"type": "metrics", "kind": "training", "batches": [worker.seq + 1], "metrics": {"loss": [0.5]}}
        answer = worker.post({"seq": worker.seq + 1 + skip, **wanted}) if honest else None
        if answer is None:
            path = f"/api/v1/runs/{job.run_id}/reports"
            headers = {"Authorization": f"Bearer {job.token}", "Content-Type": "application/json"}
            answer = self.master.client.post(path, content=json_text({"reports": [report]}), headers=headers)
        assert_refused_or_taken(answer)
        if answer.status_code == 200 and answer.json()["through"] > worker.seq:
            worker.seq = answer.json()["through"]
            self.rows[job.trial_id] = max(self.rows.get(job.trial_id, 0), worker.seq)

    @rule(pick=st.integers(0, 9), code=st.sampled_from([0, 1, -9, None]))
    def die(self, pick: int, code: int | None) -> None:
        alive = sorted(self.master.world.alive)
        if alive:
            self.master.launcher.end(alive[pick % len(alive)], code)

    @invariant()
    def it_keeps_its_word(self) -> None:
        """What has ended stays so, no slot has two trials, no trial two runs, and all can be read."""
        if not hasattr(self, "master"):
            return
        for experiment in self.master.get("/experiments"):
            number = experiment["id"]
            assert experiment["state"] == self.ended.get(number, experiment["state"])
            if experiment["state"] in TERMINAL:
                self.ended[number] = experiment["state"]
            for trial in self.master.get(f"/experiments/{number}/trials"):
                assert trial["restarts"] <= max(experiment["config"]["max_restarts"], 0)
                self.master.get(f"/trials/{trial['id']}/metrics")
        slots = [slot["trial_id"] for slot in self.master.get("/master")["slots"] if slot["trial_id"] is not None]
        assert len(slots) == len(set(slots)) <= 2


@pytest.mark.hypothesis
def test_any_history_of_requests() -> None:
    examples = min(max(3, settings.default.max_examples // 20), 200)
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
