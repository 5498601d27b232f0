"""A master whose bundles, written files, data and checkpoints lie in S3: nothing of them is in its home."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel
from installed_toy import install_toy
from s3_server import KEY, S3, SECRET, running_s3

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.long

SETUP = """
import det_native as det
from toy_framework.trial import ToyTrial
"""
TRIAL = """
class Reading(ToyTrial):
    def train_batch(self, batch_idx):
        if batch_idx == 0:
            with open("big.csv") as data, open("seen.csv", "w") as seen:
                seen.write(data.read()[:7])
            det.log_text("note", "logged")
        return super().train_batch(batch_idx)
"""
CREATE = """
experiment = det.experimental.create(Reading, {
    "hyperparameters": {"global_batch_size": 1},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}},
    "scheduling_unit": 1,
})
"""


@pytest.fixture
def s3() -> Iterator[S3]:
    """Run an S3."""
    with running_s3() as server:
        yield server


@pytest.fixture
def cluster(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A home without a master; the toy framework is on the import path of all."""
    packages = str(install_toy(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (packages, os.environ.get("PYTHONPATH", "")))))
    made = Cluster(tmp_path / "cluster")
    monkeypatch.setenv("DET_HOME", str(made.home.path))
    yield made
    made.take_down()


def test_everything_lies_in_the_bucket_and_nothing_shows_its_keys(
    cluster: Cluster, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    monkeypatch.setenv("DET_STORAGE_OPTIONS", json.dumps(s3.options))
    cluster.det("up", "--storage", f"s3://{bucket}/all")
    monkeypatch.delenv("DET_STORAGE_OPTIONS")
    with running_kernel(cluster, "notebook", SETUP, TRIAL) as kernel:
        (cluster.folder / "notebook" / "big.csv").write_text("content" * 1000)
        cluster.det("data", "put", str(cluster.folder / "notebook" / "big.csv"))
        first = _trained(cluster, kernel)
        folders = {key.split("/")[1] for key in s3.sizes(bucket)}
        assert folders == {"blobs", "data", "checkpoints"}
        cluster.det("down")
        second = _trained(cluster, kernel)  # by a master that the submit has started
    for number in (first, second):
        experiment = cluster.attach(number)
        [file] = experiment.artifacts
        assert file.download(tmp_path / str(number)).read_text() == "content"
        assert experiment.trials[0].checkpoints[-1].verify()
        [medium] = experiment.trials[0].media
        assert medium.content() == b"logged"
    home = cluster.home.path
    assert not any(path.is_file() for name in ("blobs", "checkpoints", "data") for path in (home / name).rglob("*"))
    assert any((home / "cache" / "blobs").rglob("*"))
    shown = [cluster.det("status", "--json"), cluster.det("experiment", "describe", str(first), "--json")]
    files = [path for path in home.rglob("*") if path.is_file() and path.parent.name != "secrets"]
    for text in [*(one.encode() for one in shown), *(path.read_bytes() for path in files)]:
        assert SECRET.encode() not in text
        assert KEY.encode() not in text
    assert all(path.stat().st_mode & 0o077 == 0 for path in (home / "secrets").iterdir())
    assert cluster.master.storage == f"s3://{bucket}/all"
    cluster.det("experiment", "delete", str(first), str(second), "--yes")
    cluster.det("data", "remove", "big.csv")
    assert {key.split("/")[1] for key in s3.sizes(bucket)} <= {"blobs"}


def _trained(cluster: Cluster, kernel: Kernel) -> int:
    experiment = cluster.attach(kernel.submit(CREATE))
    ended(experiment, ExperimentState.COMPLETED)
    return int(experiment.id)
