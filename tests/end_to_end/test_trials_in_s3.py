"""A master whose bundles, written files, data and checkpoints lie in S3: nothing of them is in its home."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_proxy import FaultProxy
from faults import PATIENCE, Cluster, Kernel, ended, running_kernel
from installed_toy import install_toy
from s3_server import KEY, S3, SECRET, running_s3

from det_native.schema.states import ExperimentState

ROOT = Path(__file__).parents[2]
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


@pytest.mark.long
def test_everything_lies_in_the_bucket_and_nothing_shows_its_keys(
    cluster: Cluster, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    (tmp_path / "big.csv").write_text("content" * 1000)
    monkeypatch.chdir(tmp_path)
    _do_as_documented(cluster, f"s3://{bucket}/all", json.dumps(s3.options), monkeypatch)
    with running_kernel(cluster, "notebook", SETUP, TRIAL) as kernel:
        shutil.copy(tmp_path / "big.csv", cluster.folder / "notebook")
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


@pytest.mark.soak
def test_data_that_are_cut_on_their_way_to_the_bucket_go_on_where_they_were(
    cluster: Cluster, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 24 << 20
    bucket = s3.bucket()
    (cluster.folder / "big.bin").write_bytes(random.Random(1).randbytes(size))
    with FaultProxy(int(s3.endpoint.rpartition(":")[2])) as proxy:
        options = s3.options | {"endpoint_url": f"http://127.0.0.1:{proxy.port}"}
        monkeypatch.setenv("DET_STORAGE_OPTIONS", json.dumps(options))
        cluster.det("up", "--storage", f"s3://{bucket}/all")
        monkeypatch.delenv("DET_STORAGE_OPTIONS")
        command = [cluster.interpreter, "-m", "det_native.client.command", "data", "put", "big.bin"]
        before = proxy.passed
        with (
            proxy.slow(8 << 20),
            subprocess.Popen(
                command, env=cluster.environment, cwd=cluster.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE
            ) as putting,
        ):
            _until_passed(proxy, before + (12 << 20), putting)
            os.kill(cluster.master.pid, signal.SIGKILL)
            putting.send_signal(signal.SIGINT)
            assert putting.stderr is not None
            assert b"Traceback" not in putting.stderr.read()
        assert putting.returncode != 0
        cluster.det("up")
        assert "big.bin" not in cluster.det("data", "list")
        before = proxy.passed
        assert "big.bin" in cluster.det("data", "put", "big.bin")
        assert proxy.passed - before < 2 * size, "what was there was read back for its hash, and the rest was sent"
        [key] = [key for key in s3.sizes(bucket) if "/contents/" in key]
        assert s3.sizes(bucket)[key] == size
        assert hashlib.sha256(s3.files().cat_file(f"{bucket}/{key}")).hexdigest() == key.rpartition("/")[2]
        before = proxy.passed
        cluster.det("data", "put", "big.bin")
        assert proxy.passed - before < 1 << 20, "nothing is sent twice"
        assert "big.bin" in cluster.det("data", "list")
        cluster.det("data", "remove", "big.bin")
        assert "big.bin" not in cluster.det("data", "list")
        assert s3.sizes(bucket) == {}
        assert "Uploads" not in s3.files().call_s3("list_multipart_uploads", Bucket=bucket)


def _until_passed(proxy: FaultProxy, many: int, putting: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while proxy.passed < many:
        assert putting.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _do_as_documented(cluster: Cluster, url: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of the documentation, with this storage in place of its own."""
    text = (ROOT / "docs" / "cluster.md").read_text().partition("## A storage that all machines reach")[2]
    for line in text.partition("```bash\n")[2].partition("```")[0].splitlines():
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            assert json.loads(value.strip("'")).keys() == json.loads(options).keys()
            monkeypatch.setenv(name, options)
        else:
            words = [url if word.startswith("s3://") else word for word in line.split()]
            shutil.copy("big.csv", cluster.folder)  # where commands run
            printed = cluster.det(*words[1:])
    assert "big.csv" in printed
    monkeypatch.delenv(name)


def _trained(cluster: Cluster, kernel: Kernel) -> int:
    experiment = cluster.attach(kernel.submit(CREATE))
    ended(experiment, ExperimentState.COMPLETED)
    return int(experiment.id)
