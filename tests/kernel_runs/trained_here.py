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
from typing import Any

from recording import PATIENCE

import det_native as det
from det_native.client.handles import Experiment

#: Batches that are done when it waits, of how many; what comes before a checkpoint is reported at once.
SAVED_AT, WAITS_AT, BATCHES = 10, 15, 40

PROGRAM = f"""
import json, os, pathlib, sys, time
import torch
import det_native as det

folder = pathlib.Path(sys.argv[1])
context = det.experimental.pytorch.init({{
    "hyperparameters": {{"global_batch_size": 4}},
    "searcher": {{"name": "single", "metric": "loss", "max_length": {{"batches": {BATCHES}}}}},
    "min_checkpoint_period": {{"batches": {SAVED_AT}}},
}}, local=True)
x = torch.arange(80.0).reshape(80, 1) / 80
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)
model = context.wrap_model(torch.nn.Linear(1, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
seen = []
for batch in context.train(loader):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    seen.append(loss.item())
    (folder / "seen.new").write_text(json.dumps(seen))
    (folder / "seen.new").replace(folder / "seen.json")
    if context.batch_idx + 1 == {WAITS_AT}:
        print("waiting", flush=True)
        while not (folder / "go").exists():
            time.sleep(0.02)
print("trained", flush=True)
run = det.last_experiment()
losses = [row["loss"] for row in run.trials[0].metrics("training")]
facts = {{"state": run.state.name, "losses": losses, "saved": run.top_checkpoint().batch}}
(folder / "facts.json").write_text(json.dumps(facts))
"""


class Training:
    """The script, which trains; it waits in its middle until it is let go on."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self._folder = folder

    @property
    def seen(self) -> list[float]:
        """The losses that the loop had."""
        losses: list[float] = json.loads((self._folder / "seen.json").read_text())
        return losses

    @property
    def facts(self) -> dict[str, Any]:
        """What its own handle said after the training."""
        facts: dict[str, Any] = json.loads((self._folder / "facts.json").read_text())
        return facts

    def go_on(self) -> int:
        """Let it train on; return its exit status."""
        (self._folder / "go").touch()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it without a warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@contextmanager
def training(folder: Path, **variables: str) -> Iterator[Training]:
    """Have a process train until it waits."""
    folder.mkdir(exist_ok=True)
    script = folder / "train.py"
    script.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "DET_RECORD"} | variables
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    command = [sys.executable, str(script), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment)
    try:
        assert process.stdout is not None
        assert any(line.strip() == "waiting" for line in process.stdout)
        yield Training(process, folder)
    finally:
        process.kill()
        process.communicate()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def losses_of(experiment: Experiment) -> list[float]:
    """Return the losses of the only trial, of batches that follow each other."""
    rows: list[dict[str, Any]] = experiment.trials[0].metrics("training")
    assert [row["batch"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["loss"] for row in rows]


def newest(number: int = 1) -> list[Experiment]:
    """Return the experiments that the master has recorded last, the newest first."""
    return [det.experiment(row.id) for row in det.experiments(limit=number)]
