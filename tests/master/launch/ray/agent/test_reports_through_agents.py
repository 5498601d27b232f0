"""Reports reach a real master in order, each after what it names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_parts import WORKER, ThreadBridge, at_a_socket, text_of, until, visible
from det_harness.trial.spool import Spool
from master_parts import Master, publish, running_master
from pydantic import TypeAdapter

from det_native.master.launch.ray.agent import rank_end, reports
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.asks.kinds import Problem, Publish, Reply
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.schema.job import TrialJob
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import Report
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage

REPORT: TypeAdapter[Any] = TypeAdapter(Report)


@pytest.fixture
def master(home: Path) -> Iterator[Master]:
    """Give a running master."""
    with running_master(home) as running:
        yield running


@pytest.fixture
def url(master: Master, home: Path) -> Iterator[str]:
    """Give its socket."""
    with at_a_socket(master.app, home) as address:
        yield address


@pytest.fixture
def serving(url: str, home: Path) -> Iterator[AskServer]:
    """Give what performs asks."""
    with closing(AskServer(home, url)) as made:
        yield made


class Voice:
    """Speaks for a worker of an agent that only holds: the test says what it reports."""

    def __init__(self, agent: NodeAgent, bridge: ThreadBridge, job: TrialJob) -> None:
        self.job = job
        self.root = Path(bridge.call(agent.facts()).folder)
        held = job.model_copy(update={"hparams": {"action": "hold"}})
        bridge.call(agent.start(job.run_id, 0, held.model_dump_json(), WORKER))
        self.folder = self.root / "runs" / job.run_id
        self.blobs = BlobStore(str(self.root.parent / "cache" / "blobs"))
        self.socket = str(agent._socket)

    def post(self, *sent: dict[str, Any]) -> httpx.Response:
        """Send reports to the agent, as the worker would."""
        headers = {"Authorization": f"Bearer {self.job.token}"}
        with httpx.Client(transport=httpx.HTTPTransport(uds=self.socket), timeout=60) as client:
            path = f"http://localhost/api/v1/runs/{self.job.run_id}/reports"
            return client.post(path, json={"progress": 5, "reports": list(sent)}, headers=headers)

    def checkpoint(self, batch: int) -> dict[str, Any]:
        """Publish a checkpoint on the agent's machine; return the report of it without a number."""
        here = self.job.model_copy(update={"checkpoints": str(self.root / "checkpoints")})
        return publish(here, batch)[1]

    def end(self) -> None:
        """Have the worker end."""
        (self.folder / "go").write_text("0")


def rows(batch: int) -> dict[str, Any]:
    """Return a report of one batch without a number."""
    return {"type": "metrics", "kind": "training", "batches": [batch], "metrics": {"loss": [0.5]}}


def numbered(*sent: dict[str, Any]) -> list[dict[str, Any]]:
    """Number reports."""
    return [{"seq": number, **report} for number, report in enumerate(sent, 1)]


@pytest.mark.long
def test_a_checkpoint_is_reported_once_the_master_has_it(
    make_agent: Callable[..., NodeAgent],
    master: Master,
    serving: AskServer,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "_PATIENCE", 0.5)
    agent = make_agent()
    master.create()
    [job] = master.world.wait_for_jobs(1)
    storage = CheckpointStorage(str(home / "checkpoints"))
    with ThreadBridge(serving, [agent], "slow", hold=lambda ask: isinstance(ask.what, Publish)) as bridge:
        voice = Voice(agent, bridge, job)
        batch = numbered({"type": "started", "batch": 0}, rows(1), voice.checkpoint(1), rows(2))
        answer = voice.post(*batch)
        assert answer.status_code == 503, "the upload takes longer than a worker waits"
        assert [row["batch"] for row in master.get(f"/trials/{job.trial_id}/metrics")] == [1], (
            "what is before it is told"
        )
        assert master.get(f"/trials/{job.trial_id}/checkpoints") == []
        assert storage.list() == []
    with ThreadBridge(serving, [agent], "next") as bridge:
        answer = until(lambda: (found := voice.post(*batch)).status_code == 200 and found)
        assert answer.json()["through"] == 4
        [known] = master.get(f"/trials/{job.trial_id}/checkpoints")
        assert known["location"] == str(home / "checkpoints" / known["uuid"])
        storage.verify(CheckpointManifest.model_validate(known["manifest"]))
        voice.end()
        bridge.wait_for((job.run_id, 0))
    assert [row["batch"] for row in master.get(f"/trials/{job.trial_id}/metrics")] == [1, 2]


@pytest.mark.soak
def test_what_is_lost_on_the_machine_is_told_and_holds_nothing_up(
    make_agent: Callable[..., NodeAgent], master: Master, serving: AskServer, home: Path
) -> None:
    agent = make_agent()
    master.create()
    [job] = master.world.wait_for_jobs(1)
    with ThreadBridge(serving, [agent]) as bridge:
        voice = Voice(agent, bridge, job)
        whole, gone = (hashlib.sha256(content).hexdigest() for content in (b"whole", b"gone"))
        voice.blobs.put(whole, b"whole")
        lost = voice.checkpoint(1)
        uuid = lost["manifest"]["uuid"]
        (voice.root / "checkpoints" / uuid / "weights").write_text("damaged after 1")
        files = [
            {"path": name, "sha256": sha256, "size": 5, "batch": 1} for name, sha256 in (("a", whole), ("b", gone))
        ]
        picture = {"batch": 1, "kind": "image", "name": "p", "sha256": gone, "size": 4, "format": "png"}
        answer = voice.post(
            *numbered(
                {"type": "started", "batch": 0},
                lost,
                {"type": "artifacts", "files": files},
                {"type": "media", "items": [picture]},
                rows(1),
            )
        )
        assert (answer.status_code, answer.json()["through"]) == (200, 5), answer.text
        voice.end()
        bridge.wait_for((job.run_id, 0))
    assert master.get(f"/trials/{job.trial_id}/checkpoints") == []
    assert CheckpointStorage(str(home / "checkpoints")).list() == []
    artifacts = {file["path"]: file for file in master.get(f"/trials/{job.trial_id}/artifacts")}
    assert artifacts["a"]["sha256"] == whole
    assert artifacts["b"]["sha256"] is None
    assert "lost" in artifacts["b"]["note"]
    assert master.get(f"/trials/{job.trial_id}/media") == []


@pytest.mark.long
def test_reports_that_are_left_are_sent_and_a_refusal_is_said_in_the_output(
    make_agent: Callable[..., NodeAgent], master: Master, serving: AskServer, home: Path
) -> None:
    agent = make_agent()
    for _ in range(2):
        master.create()
    jobs = master.world.wait_for_jobs(2)
    fenced = jobs[1].model_copy(update={"token": "another"})
    with ThreadBridge(serving, [agent]) as bridge:
        for job in (jobs[0], fenced):
            voice = Voice(agent, bridge, job)
            spool = Spool(voice.folder / "spool")
            sent = numbered({"type": "started", "batch": 0}, voice.checkpoint(1), rows(1))
            for report in sent:
                spool.append(report["seq"], REPORT.validate_python(report).model_dump_json())
            voice.end()
            bridge.wait_for((job.run_id, 0))
        until(lambda: visible(voice.root / "checkpoints") == [])
    [known] = master.get(f"/trials/{jobs[0].trial_id}/checkpoints")
    CheckpointStorage(str(home / "checkpoints")).verify(CheckpointManifest.model_validate(known["manifest"]))
    assert text_of(home / "runs" / jobs[0].run_id / "output.log") == "waiting\n"
    assert "does not take what was left to report" in text_of(home / "runs" / fenced.run_id / "output.log")


@pytest.mark.soak
def test_without_a_bridge_workers_are_told_to_wait(
    make_agent: Callable[..., NodeAgent], master: Master, serving: AskServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_agent()
    master.create()
    [job] = master.world.wait_for_jobs(1)
    with ThreadBridge(serving, [agent]) as bridge:
        voice = Voice(agent, bridge, job)
        path = f"http://localhost/api/v1/runs/{job.run_id}/best"
        with httpx.Client(transport=httpx.HTTPTransport(uds=voice.socket), timeout=60) as client:
            best = client.get(path, headers={"Authorization": f"Bearer {job.token}"})
        assert best.json() == {"value": None}
        unknown = job.run_id[:-1] + "0"
        voice.job = job.model_copy(update={"run_id": unknown})
        assert voice.post().status_code == 404
        voice.job = job
    monkeypatch.setattr("det_native.master.launch.ray.agent.ask_queue._AWAY_SECONDS", 0.0)
    answer = voice.post(*numbered(rows(1)))
    assert answer.status_code == 503
    assert "away" in answer.json()["error"]


class Refusing(AskServer):
    """Takes no checkpoint, whatever is tried."""

    async def perform(self, what: Any) -> Reply:
        """Refuse that one appears."""
        return Problem("A folder is in the way.") if isinstance(what, Publish) else await super().perform(what)


@pytest.mark.soak
def test_what_the_master_never_takes_is_said_and_given_up(
    make_agent: Callable[..., NodeAgent], master: Master, url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_end, "_REFUSED_SECONDS", 0.0)
    agent = make_agent()
    master.create()
    [job] = master.world.wait_for_jobs(1)
    with closing(Refusing(home, url)) as refusing, ThreadBridge(refusing, [agent]) as bridge:
        voice = Voice(agent, bridge, job)
        spool = Spool(voice.folder / "spool")
        for report in numbered({"type": "started", "batch": 0}, voice.checkpoint(1), rows(1)):
            spool.append(report["seq"], REPORT.validate_python(report).model_dump_json())
        voice.end()
        bridge.wait_for((job.run_id, 0))
    assert "The master cannot take what was reported last: A folder is in the way." in text_of(
        home / "runs" / job.run_id / "output.log"
    )
    assert master.get(f"/trials/{job.trial_id}/checkpoints") == []
    assert "A folder is in the way." in master.get(f"/trials/{job.trial_id}")["warning"]
