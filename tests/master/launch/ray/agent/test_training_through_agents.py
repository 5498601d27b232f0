"""A real training on two machines, one after the other, for a real master that neither of them can reach itself."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_parts import ThreadBridge, at_a_socket, text_of, until, visible
from master_parts import Master, configuration, running_master

from det_native import PROTOCOL
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.master.launch.ray.messages import Worker
from det_native.schema.job import TrialJob
from det_native.schema.manifests import BundleManifest, CallSite, Cell, CheckpointManifest, Interpreter, Program
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.long

MakeAgent = Callable[..., NodeAgent]
TORCH = Worker(framework="torch")

API = """
def train(trial_class):
    from det_native.runtime import active_host
    return active_host().take_call("create", trial_class)
"""
TRIAL = """
import os, pathlib, signal, time
import torch
import det_native as det
from det_native.pytorch import PyTorchTrial, DataLoader

def die_once_a_checkpoint_is_reported():
    if not os.path.exists(DIED):
        open(DIED, "w").close()
        while not any('"checkpoint"' in path.read_text() for path in pathlib.Path("../spool").glob("*.jsonl")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        return self.layer(x)

class Tiny(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(Counting())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 2)), batch_size=4)
    build_validation_data_loader = build_training_data_loader
    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch[0]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.model.batches += 1
        print("weights have seen", int(self.model.batches), "of", batch_idx + 1, "batches", flush=True)
        if batch_idx == 7:
            die_once_a_checkpoint_is_reported()
        if batch_idx == 3:
            det.log_image("square", (torch.ones(4, 4, 3) * 255).to(torch.uint8).numpy())
            open("written.txt", "w").write("by the first machine")
        return {"loss": loss}
    def evaluate_batch(self, batch):
        return {"loss": self.model(batch[0]).square().mean()}
"""


@pytest.fixture
def master(home: Path) -> Iterator[Master]:
    with running_master(home) as running:
        yield running


def submitted(master: Master, died: Path) -> int:
    """Submit an experiment whose first worker dies once its first checkpoint is reported; return its id."""
    sources = ["from agent_test_api import train", f"DIED = {str(died)!r}\n{TRIAL}", "train(Tiny)"]
    manifest = BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python=platform.python_version(), executable=sys.executable),
        program=Program(
            kind="cells",
            framework="torch",
            cells=tuple(Cell(number=n, cell_id=None, source=source) for n, source in enumerate(sources, 1)),
            call=CallSite(kind="create", cell=2, line=1, column=0),
        ),
    )
    stored = master.client.post("/api/v1/bundles", json=manifest.content())
    assert stored.status_code == 200, stored.text
    config = configuration(
        hyperparameters={"global_batch_size": 4},
        searcher={"max_length": {"batches": 10}},
        min_checkpoint_period={"batches": 5},
        min_validation_period={"batches": 5},
    )
    body = {"protocol": PROTOCOL, "config": config, "bundle_id": stored.json()["id"]}
    created = master.client.post("/api/v1/experiments", json=body)
    assert created.status_code == 201, created.text
    return int(created.json()["id"])


def run_on(agent: NodeAgent, bridge: ThreadBridge, master: Master, job: TrialJob) -> int | None:
    """Run a job of the master on a machine that has a standby, and tell the master of its end."""
    events = Path(job.home, "tensorboard", str(job.experiment_id), str(job.trial_id))
    events.mkdir(parents=True, exist_ok=True)  # as the launcher does
    until(lambda: bridge.call(agent.standbys()).get("torch"))
    started = bridge.call(agent.start(job.run_id, 0, job.model_dump_json(), TORCH))
    assert started["standby"] == "ready"
    [ended] = bridge.wait_for((job.run_id, 0))
    master.launcher.end(job.run_id, ended.code, ended.detail)
    return ended.code


def test_a_trial_goes_on_at_another_machine_with_the_weights_of_the_first(
    make_agent: MakeAgent, master: Master, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "agent_test_api.py").write_text(API)
    first, second = (
        make_agent(name, entry="det_harness.worker.job:run_job", path=str(tmp_path / "api")) for name in "ab"
    )
    with (
        at_a_socket(master.app, home) as url,
        closing(AskServer(home, url)) as server,
        ThreadBridge(server, [first, second]) as bridge,
    ):
        for agent in (first, second):
            bridge.call(agent.warm(TORCH))
        experiment = submitted(master, tmp_path / "died")
        [job] = master.world.wait_for_jobs(1)
        assert run_on(first, bridge, master, job) == -9, text_of(home / "runs" / job.run_id / "output.log")
        resumed = master.world.wait_for_jobs(2)[1]
        assert resumed.resume is not None
        assert resumed.resume.batch == 5
        code = run_on(second, bridge, master, resumed)
        output = text_of(home / "runs" / resumed.run_id / "output.log")
        assert code == 0, output
        master.until_state(experiment, "COMPLETED")
        for agent in (first, second):
            checkpoints = Path(bridge.call(agent.facts()).folder) / "checkpoints"
            until(lambda checkpoints=checkpoints: visible(checkpoints) == [])  # type: ignore[misc]
    lines = [line for line in output.splitlines() if line.startswith("weights")]
    assert lines == [f"weights have seen {n} of {n} batches" for n in range(6, 11)]
    [trial] = master.get(f"/experiments/{experiment}/trials")
    rows = master.get(f"/trials/{trial['id']}/metrics", kind="training")
    assert [row["batch"] for row in rows] == list(range(1, 11))
    verify_checkpoints(master, trial["id"], home)
    [artifact] = master.get(f"/trials/{trial['id']}/artifacts")
    content = master.client.get(f"/api/v1/trials/{trial['id']}/artifacts/content", params={"path": "written.txt"})
    assert (artifact["path"], content.content) == ("written.txt", b"by the first machine")
    [medium] = master.get(f"/trials/{trial['id']}/media")
    picture = master.client.get(f"/api/v1/trials/{trial['id']}/media/{medium['id']}/content").content
    assert picture.startswith(b"\x89PNG")
    events = list((home / "tensorboard" / str(experiment) / str(trial["id"])).rglob("*tfevents*"))
    assert events
    assert all(path.stat().st_size for path in events)


def verify_checkpoints(master: Master, trial: int, home: Path) -> None:
    """See that the master has all checkpoints that it knows of, with the content that was saved."""
    storage = CheckpointStorage(str(home / "checkpoints"))
    known: list[dict[str, Any]] = master.get(f"/trials/{trial}/checkpoints")
    assert {checkpoint["batch"] for checkpoint in known} >= {5, 10}
    for checkpoint in known:
        if checkpoint["state"] == "COMPLETED":
            storage.verify(CheckpointManifest.model_validate(checkpoint["manifest"]))
            assert checkpoint["location"] == str(home / "checkpoints" / checkpoint["uuid"])
