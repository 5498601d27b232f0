"""A training in the kernel's own process while its disk becomes full, before a batch that is drawn.

``DET_FULL_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disks import SmallDisk, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("recorded")]

BATCHES = 12

PROGRAM = """
import hashlib, os, shutil, sys
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

DISK = os.environ["DISK"]


class Filling(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9))

    def loader(self):
        x = torch.randn(40, 6, generator=torch.Generator().manual_seed(3))
        return DataLoader(torch.utils.data.TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=True)

    build_training_data_loader = build_validation_data_loader = loader

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx + 1 == self.context.get_hparam("fills"):
            with open(f"{DISK}/filler", "ab", buffering=0) as filler:
                try:
                    while filler.write(bytes(1 << 16)):
                        pass
                except OSError:
                    pass
                while free := shutil.disk_usage(DISK).free:
                    filler.write(bytes(min(free, 4096)))
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": self.loss(batch)}


for fills in (0, int(sys.argv[1])):
    configuration = {
        "hyperparameters": {"global_batch_size": 8, "fills": fills},
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 12}},
        "min_validation_period": {"batches": 4},
        "min_checkpoint_period": {"batches": 2},
        "checkpoint_policy": "none",
        "scheduling_unit": 1,
        "reproducibility": {"experiment_seed": 11},
    }
    experiment = det.experimental.create(Filling, configuration, local=True)
    [trial] = experiment.trials
    values = experiment.checkpoints[-1].load().model.state_dict().values()
    weights = b"".join(value.numpy().tobytes() for value in values)
    rows = [trial.metrics("training"), trial.metrics("validation")]
    print("END", experiment.state, hashlib.sha256(weights).hexdigest(), rows, flush=True)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "32m") as mounted:
        yield mounted


def test_it_waits_for_room_says_so_and_ends_the_same_bit_for_bit(disk: SmallDisk, tmp_path: Path) -> None:
    seed = int(os.environ.get("DET_FULL_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_FULL_SEED={seed}")  # shown where the test fails
    fills = random.Random(seed).randrange(1, BATCHES - 2)
    places = {"DET_HOME": str(disk.path / "home"), "DISK": str(disk.path), "TMPDIR": str(tmp_path)}
    (tmp_path / "program.py").write_text(PROGRAM)
    output, variables = tmp_path / "output", os.environ | places
    command = [sys.executable, "program.py", str(fills)]
    with (
        output.open("w") as stream,
        subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=stream, stderr=subprocess.STDOUT) as process,
    ):
        deadline = time.monotonic() + 120
        while "waits for disk space in" not in output.read_text():
            assert process.poll() is None, output.read_text()
            if time.monotonic() > deadline:
                process.kill()
                raise AssertionError(output.read_text())
            time.sleep(0.02)
        disk.empty()
        assert process.wait(120) == 0, output.read_text()
    ends = [line for line in output.read_text().splitlines() if line.startswith("END")]
    assert len(ends) == 2
    assert ends[0].startswith("END Completed")
    assert ends[0] == ends[1]
