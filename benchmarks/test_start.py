"""From the start of a process to the end of its first batch, over a script without us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MODEL = """
import torch
from torch import nn

def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

def make_dataset():
    return torch.utils.data.TensorDataset(torch.randn(3200, 64), torch.randint(10, (3200,)))
"""

BARE = """
model, loader = make_model(), torch.utils.data.DataLoader(make_dataset(), batch_size=32, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, labels in loader:
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    print("first", flush=True)
    break
"""

OURS = """
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Tiny(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(make_model())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    def build_training_data_loader(self):
        return DataLoader(make_dataset(), batch_size=32, shuffle=True)

    def build_validation_data_loader(self):
        return DataLoader(make_dataset(), batch_size=32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 1:
            print("first", flush=True)
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": nn.functional.cross_entropy(self.model(batch[0]), batch[1])}

config = {
    "hyperparameters": {"global_batch_size": 32},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 2}},
}
det.experimental.create(Tiny, config, local=True)
"""


def test_cold_start(paired: Any, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DET_HOME": str(tmp_path / "home")}

    def start(name: str, source: str) -> Any:
        script = tmp_path / name
        script.write_text(MODEL + source)

        def until_first_batch() -> None:
            process = subprocess.Popen(
                [sys.executable, str(script)],
                env=environment,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            with process:
                assert process.stdout is not None
                assert "first" in iter(process.stdout.readline, "").__next__()
                process.kill()

        return until_first_batch

    paired(
        "a script from its start to the end of its first batch, over one without us",
        start("ours.py", OURS),
        start("bare.py", BARE),
        goal=1.05,
        rounds=11,
    )
