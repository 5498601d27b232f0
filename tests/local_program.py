"""A script that trains in its own process and waits in the middle, for tests that look at it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Long, for what it waits for always comes: others use the machine too.
PATIENCE = 150.0
#: Batches that are done when it waits, of how many.
WAITS_AT, BATCHES = 20, 40

TRIAL = f"""
import pathlib, sys, time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    def data(self):
        x = torch.arange(80.0).reshape(80, 1) / 80
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)

    build_training_data_loader = build_validation_data_loader = data

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == {WAITS_AT}:
            print("waiting", flush=True)
            while not pathlib.Path(GO).exists():
                time.sleep(0.02)
        if batch_idx % 10 == 0:
            print(f"at batch {{batch_idx}}")
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {{"loss": loss}}

    def evaluate_batch(self, batch):
        return {{"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}}

CONFIG = {{
    "name": "a line",
    "hyperparameters": {{"global_batch_size": 4}},
    "searcher": {{"name": "single", "metric": "error", "max_length": {{"batches": {BATCHES}}}}},
    "min_validation_period": {{"batches": 10}},
    "min_checkpoint_period": {{"batches": 10}},
}}
"""

CALL = "det.experimental.create(Line, CONFIG, local=True)"


class Running:
    """The script, which trains; it waits in its middle until it is let go on."""

    def __init__(self, process: subprocess.Popen[str], go: Path, folder: Path) -> None:
        self.process = process
        self._go = go
        self.folder = folder

    def go_on(self) -> int:
        """Let it train on; return its exit status."""
        self._go.touch()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it without a warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@contextmanager
def local_training(folder: Path) -> Iterator[Running]:
    """Have a process train in ``DET_HOME`` until it waits, and what it has reported is written."""
    go = folder / "go"
    script = folder / "line.py"
    script.write_text(f"GO = {str(go)!r}\n{TRIAL}\n{CALL}\n")
    environment = os.environ | {"TMPDIR": str(folder)}  # torch leaves a folder there
    command = [sys.executable, str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "waiting":
                break
        newest = max((Path(os.environ["DET_HOME"]) / "local").glob("[0-9]*"), key=lambda each: int(each.name))
        until(lambda: _is_written(newest))
        yield Running(process, go, newest)
    finally:
        process.kill()
        process.communicate()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_written(folder: Path) -> bool:
    """Whether all is there that it reported before it waits: its progress is written after its rows, its log beside."""
    trial = folder / "trials/1"
    if not all((trial / name).exists() for name in ("training.jsonl", "log.jsonl")):
        return False
    progress = json.loads((folder / "experiment.json").read_text())["progress"]
    rows = (trial / "training.jsonl").read_text().splitlines()
    written = '"waiting"' in (trial / "log.jsonl").read_text()
    return len(rows) == WAITS_AT and progress == WAITS_AT / BATCHES and written
