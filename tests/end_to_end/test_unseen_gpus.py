"""A GPU slot, and builds of PyTorch and TensorFlow that are for processors: no trial trains there without a word."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fake_gpus import make_driver
from faults import PATIENCE, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.long]

PYTORCH = """
import torch
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 1)), batch_size=4)
    build_validation_data_loader = build_training_data_loader
    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch[0]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}
    def evaluate_batch(self, batch):
        return {"val_loss": self.model(batch[0]).square().mean()}
"""
KERAS = """
import numpy as np
import tensorflow as tf
from det_native.keras import TFKerasTrial

class Line(TFKerasTrial):
    def __init__(self, context):
        self.context = context
    def build_model(self):
        model = self.context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dense(1)]))
        model.compile(self.context.wrap_optimizer(tf.keras.optimizers.SGD()), "mse")
        return model
    def build_training_data_loader(self):
        return np.zeros((8, 1)), np.zeros((8, 1))
    build_validation_data_loader = build_training_data_loader
"""
CONFIG = """
name: line
entrypoint: model_def:Line
hyperparameters: {global_batch_size: 4}
searcher: {name: single, metric: val_loss, max_length: {batches: 2}}
max_restarts: 5
"""
# By a process of somebody else.
FILLED = {"FAKE_NVML_USED": "60000000000", "FAKE_NVML_PID": "1"}


class GpuCluster(Cluster):
    """A cluster on a machine with one GPU that no framework here can use; its driver takes CUDA up to 12.4."""

    def __init__(self, folder: Path, driver: Path) -> None:
        super().__init__(folder, slots="1")
        self.driver = driver

    @property
    def environment(self) -> dict[str, str]:
        """Where the master finds the driver."""
        variables = super().environment
        variables.pop("CUDA_VISIBLE_DEVICES", None)
        path = f"{self.driver}:{variables['PATH']}"
        return variables | {"LD_LIBRARY_PATH": str(self.driver), "PATH": path, "FAKE_NVML_CUDA": "12040", **FILLED}

    def create(self, code: str, *options: str) -> tuple[int, str]:
        """Train a directory and wait for its end; returns the exit code, and what was printed."""
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        (folder / "model_def.py").write_text(code)
        (folder / "const.yaml").write_text(CONFIG)
        command = [self.interpreter, "-m", "det_native.client.command", "experiment", "create", "-f"]
        done = subprocess.run(
            [*command, "model/const.yaml", "model", *options],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuCluster]:
    """The cluster, with a master."""
    if torch.version.cuda is not None:
        pytest.skip("PyTorch here is built for GPUs")
    cluster = GpuCluster(tmp_path_factory.mktemp("gpus"), make_driver(tmp_path_factory.mktemp("driver")))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.take_down()


@pytest.mark.parametrize(
    ("code", "sees", "command"),
    [
        (PYTORCH, f"PyTorch {torch.__version__} sees no GPU", "--torch-backend auto"),
        (KERAS, "TensorFlow", "pip install 'tensorflow[and-cuda]=="),
    ],
    ids=["torch", "keras"],
)
def test_a_framework_that_sees_no_gpu_is_refused_with_the_command_that_mends_it(
    cluster: GpuCluster, code: str, sees: str, command: str
) -> None:
    ended, printed = cluster.create(code)
    assert ended == 1, printed
    assert "Traceback" not in printed, "a sentence says it all"
    assert "cuda:0: " + sees in printed
    assert "it is built for the processors only; the driver takes CUDA up to 12.4." in printed
    assert f"Install a build for it: `{Path(cluster.interpreter).parent}/python" in printed
    assert command in printed
    assert "set resources.allow_cpu: true" in printed
    [trial] = json.loads(cluster.det("trial", "list", newest(cluster), "--json"))
    assert (trial["state"], trial["restarts"]) == ("ERROR", 0), "each further attempt would end the same way"


def test_with_allow_cpu_it_trains_there_and_warns(cluster: GpuCluster) -> None:
    ended, printed = cluster.create(PYTORCH, "--config", "resources.allow_cpu=true")
    assert ended == 0, printed
    assert "Of cuda:0, Fake H100, which no trial holds, other processes (1 " in printed
    assert "WARNING: It trains on the processors. cuda:0: PyTorch" in printed
    [trial] = json.loads(cluster.det("trial", "list", newest(cluster), "--json"))
    assert trial["warning"].startswith(f"It trains on the processors. cuda:0: PyTorch {torch.__version__} sees no GPU")


def newest(cluster: GpuCluster) -> str:
    """Return the number of the last experiment."""
    return str(json.loads(cluster.det("experiment", "list", "--json"))[0]["id"])
