"""Machines of a Ray cluster and a storage in S3: workers bring everything there themselves, and go on elsewhere."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, Cluster, Gate, checkpoint_at, ended, running_kernel
from installed_toy import install_toy
from s3_server import S3, SECRET, running_s3

from det_native.schema.states import ExperimentState

sys.path.append(str(Path(__file__).parents[1] / "master" / "launch" / "ray"))
sys.path.append(str(Path(__file__).parents[1] / "master" / "launch"))
from ray_cluster import RayCluster, RayNode

pytestmark = pytest.mark.soak

#: What agents run their jobs with.
ENTRY = "det_harness.worker.job:run_job"
TRIAL = """
import pathlib
import det_native as det
from toy_framework.trial import ToyTrial

class Reading(ToyTrial):
    def train_batch(self, batch_idx):
        if batch_idx == 0:
            with open("big.csv") as data, open("seen.csv", "w") as seen:
                seen.write(data.read()[:7])
            det.log_text("note", "logged")
        if batch_idx == 6:
            seen = pathlib.Path("seen.csv")  # each run has a folder of its own
            gate(self.context.get_hparam("port"), seen.read_text() if seen.exists() else "again")
        if batch_idx == 7:
            pathlib.Path("last.csv").write_text("written")
        return super().train_batch(batch_idx)
"""
CREATE = """
experiment = det.experimental.create(Reading, {
    "hyperparameters": {"global_batch_size": 1, "port": settings["port"]},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 8}},
    "scheduling_unit": 1,
    "min_checkpoint_period": {"batches": 3},
    "checkpoint_policy": "none",
})
"""

LOADED = "[loaded.steps for loaded in (each.load() for each in det.attach(experiment.id).trials[0].checkpoints[-1:])]"


@pytest.fixture
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the toy framework on the import path of all, the machines of the cluster too."""
    paths = (str(install_toy(tmp_path)), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.fixture
def machines(packages: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """Run a cluster of a head without slots and two machines with one each."""
    running = RayCluster(0, DET_AGENT_ENTRY=ENTRY, PYTHONPATH=os.environ["PYTHONPATH"])
    try:
        for name, value in running.environment.items():
            if name.startswith("RAY_"):
                monkeypatch.setenv(name, value)
        running.add_node(1)
        running.add_node(1)
        yield running
    finally:
        running.stop()


@pytest.fixture
def cluster(machines: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Give a home whose master will have those machines."""
    made = Cluster(tmp_path / "cluster", slots="1")
    monkeypatch.setenv("DET_HOME", str(made.home.path))
    yield made
    made.take_down()


def test_all_goes_to_the_bucket_from_the_machines_themselves_and_the_other_one_goes_on(
    cluster: Cluster, machines: RayCluster, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    monkeypatch.setenv("DET_STORAGE_OPTIONS", json.dumps(s3.options))
    cluster.det("up", "--launcher", "ray", "--ray-address", machines.address, "--storage", f"s3://{bucket}/all")
    monkeypatch.delenv("DET_STORAGE_OPTIONS")
    (cluster.folder / "big.csv").write_text("content" * 1000)
    cluster.det("data", "put", "big.csv")
    gate = Gate()
    with running_kernel(cluster, "notebook", GATE_CELL, TRIAL) as kernel:
        (kernel.folder / "big.csv").write_text("content" * 1000)
        experiment = cluster.attach(kernel.submit_with(CREATE, port=gate.port))
        worker = gate.next()
        assert worker.text == "content"
        checkpoint_at(experiment, 6)
        first = node_of(machines, worker.pid)
        machines.kill_node(first)
        worker.line.close()
        again = gate.next()
        assert again.text == "again", "it goes on after the checkpoint"
        assert node_of(machines, again.pid) is not first
        again.go()
        ended(experiment, ExperimentState.COMPLETED)
        assert [len(loaded) for loaded in kernel.value(LOADED)] == [4]
    gate.close()
    [trial] = experiment.trials
    assert trial.metrics("training")[-1]["batch"] == 8
    assert trial.detail().restarts == 1, "a machine that dies may have died of what it ran"
    assert all(each.verify() for each in trial.checkpoints)
    [file] = experiment.artifacts
    assert file.path == "last.csv", "a trial has the files of its newest run"
    assert file.download(tmp_path / "last").read_text() == "written"
    assert {medium.content() for medium in trial.media} == {b"logged"}
    keys = [key.split("/") for key in s3.sizes(bucket)]
    assert {(key[0], key[1]) for key in keys} == {("all", "blobs"), ("all", "data"), ("all", "checkpoints")}
    # What agents write of these into the home arrives in these folders; of a file that was not reported, in `work`.
    home = cluster.home.path
    assert not [
        path for name in ("blobs", "checkpoints", "data") for path in (home / name).rglob("*") if path.is_file()
    ]
    assert not [*(home / "runs").glob("*/work/seen.csv"), *(home / "runs").glob("*/work/last.csv")]
    for path in home.rglob("*.log"):
        assert SECRET not in path.read_text()


def test_a_storage_that_only_the_head_reaches_is_told_at_the_submit(
    packages: None, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "storage"
    folder.mkdir()
    machines = RayCluster(
        0, DET_AGENT_ENTRY=ENTRY, PYTHONPATH=os.environ["PYTHONPATH"], AWS_EC2_METADATA_DISABLED="true"
    )
    try:
        machines.add_node(1, without=folder)
        monkeypatch.setenv("DET_STORAGE_OPTIONS", json.dumps({"endpoint_url": s3.endpoint}))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options["key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["secret"])
        for name, value in machines.environment.items():
            if name.startswith("RAY_"):
                monkeypatch.setenv(name, value)
        said = [
            refusal(Cluster(tmp_path / name, slots="1"), machines, storage, monkeypatch)
            for name, storage in (("first", str(folder)), ("second", f"s3://{s3.bucket()}/all"))
        ]
    finally:
        machines.stop()
    assert f"does not see the master's folder {folder}: have all machines share it" in said[0]
    assert "cannot write to s3://bucket-" in said[1]
    assert "Unable to locate credentials. Give it access, or keys (DET_STORAGE_OPTIONS" in said[1]


def refusal(cluster: Cluster, machines: RayCluster, storage: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Submit to a master with this storage; return why nothing was queued."""
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    try:
        cluster.det("up", "--launcher", "ray", "--ray-address", machines.address, "--storage", storage)
        with running_kernel(cluster, "notebook", GATE_CELL, TRIAL) as kernel:
            (kernel.folder / "big.csv").write_text("content")
            kernel.run("settings = {'port': 0}")
            refused = kernel.run(CREATE, fails=True).error
        assert cluster.running() == set()
    finally:
        cluster.take_down()
    return refused


def node_of(machines: RayCluster, pid: int) -> RayNode:
    """Return the machine that a process is on."""
    above = {process.pid for process in psutil.Process(pid).parents()}
    [found] = [node for node in machines.nodes if node.pid in above]
    return found
