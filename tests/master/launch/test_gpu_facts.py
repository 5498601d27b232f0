"""What the driver's library tells of GPUs: a real shared library stands in for it, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpus import make_driver

from det_native.schema.nvml import read_gpus

USED = 60_000_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library, and of an ``nvidia-smi`` that lists its GPU."""
    return make_driver(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def environment(library: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where it is found, with a home of its own; its master is ended."""
    variables = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "PATH": f"{library}:{os.environ['PATH']}",
        "DET_HOME": str(tmp_path / "home"),
        "FAKE_NVML_USED": str(USED),
        "FAKE_NVML_PID": str(os.getpid()),
    }
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    yield variables
    det(variables, "down", "--kill")


def det(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_without_the_library_nothing_is_known() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is one here")
    assert read_gpus(["0"]) == {}


@pytest.mark.slow
def test_slots_have_names_and_a_gpu_that_others_fill_is_said(environment: dict[str, str]) -> None:
    det(environment, "up")
    assert "0 of 1 busy (1 Fake H100 (80.0 GB))" in det(environment, "status")
    assert "Fake H100 (80.0 GB)" in det(environment, "slot", "list")
    asking = (
        "from det_native.client.connect import connect; from det_native.schema import routes;"
        "from det_native.schema.worker_environment import EnvironmentQuestion;"
        "print(*connect(start=False).call(routes.ASK_ENVIRONMENT, EnvironmentQuestion(modules=[])).notices)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asking], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert f"other processes ({os.getpid()} " in done.stdout
    assert "use 60.0 of 80.0 GB: a trial there may find no memory" in done.stdout


@pytest.mark.slow
def test_a_gpu_by_its_uuid_and_one_that_is_not_there(environment: dict[str, str]) -> None:
    code = "from det_native.schema.nvml import read_gpus; print(sorted(read_gpus(['GPU-fake', 'GPU-other', '0', '7'])))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['0', 'GPU-fake']"


TRAINING = """
import json, time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def build_training_data_loader(self):
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}

if __name__ == "__main__":
    config = {
        "hyperparameters": {"global_batch_size": 4},
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 8}},
        "resources": {"allow_cpu": True},
    }
    trial = det.experimental.create(Line, config).wait(show="none").trials[0]
    print(json.dumps([trial.state, trial.metrics("system")]))
"""


@pytest.mark.long
def test_a_trial_tells_how_much_of_its_gpu_is_used(environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, script],
        env=environment | {"FAKE_NVML_BUSY": "87"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    state, samples = json.loads(done.stdout.splitlines()[-1])
    assert state == "Completed"
    assert samples
    for sample in samples:
        assert (sample["gpu0_percent"], sample["gpu0_memory_bytes"]) == (87.0, USED)
