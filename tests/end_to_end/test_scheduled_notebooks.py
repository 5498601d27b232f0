"""The file of a notebook is submitted from the command line, at once or by a schedule, and trains."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.errors import DetError

CELLS = [
    "import torch\nimport det_native as det\nfrom torch.utils.data import TensorDataset\n"
    "from det_native.pytorch import DataLoader, PyTorchTrial",
    """class Trial(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(2, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        self.data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))

    def build_training_data_loader(self):
        return DataLoader(self.data, batch_size=4)

    def build_validation_data_loader(self):
        return DataLoader(self.data, batch_size=4)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = ((self.model(batch[0]) - batch[1]) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": ((self.model(batch[0]) - batch[1]) ** 2).mean()}""",
    """config = {
    "hyperparameters": {"global_batch_size": 4},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}},
}
det.experimental.create(Trial, config)""",
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """Write a notebook that no kernel has run."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(CELLS)
    ]
    path = tmp_path / "work" / "digits.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Give a home, whose master is stopped at the end."""
    path = tmp_path / "home"
    yield path
    det(path, "down", "--kill")


def det(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("det")), *words]
    environment = {**os.environ, "DET_HOME": str(home), "DET_SLOTS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)


@pytest.mark.long
@pytest.mark.slow
def test_a_notebook_is_submitted_now_and_by_a_schedule(notebook: Path, home: Path) -> None:
    done = det(home, "notebook", "submit", str(notebook))
    assert "Experiment 1 is submitted." in done.stdout, done.stderr
    later = det(home, "submit", str(notebook), "--every", "1d")
    assert "Schedule 1 (digits) submits it next at" in later.stdout, later.stderr
    [schedule] = json.loads(det(home, "schedule", "list", "--json").stdout)
    assert (schedule["state"], schedule["timing"]["every"]) == ("ACTIVE", "1d")
    assert schedule["config"]["searcher"]["max_length"] == {"batches": 4}
    waited = det(home, "experiment", "wait", "1")
    assert waited.returncode == 0, waited.stderr
    assert len(json.loads(det(home, "experiment", "list", "--json").stdout)) == 1


def test_wrong_times_and_files_are_one_sentence(notebook: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ipynb"
    other.write_text("{}")
    for words, said in (
        ((str(notebook), "--at", "soon"), "'soon' is no time"),
        ((str(notebook), "--at", "2001-01-01"), "has passed"),
        ((str(notebook), "--every", "often"), "is no time between two submissions"),
        ((str(notebook), "--every", "1d", "--timezone", "Mars/Olympus"), "is no time zone"),
        ((str(notebook), "--every", "1d", "--at", "22:00"), "exclude each other"),
        ((str(notebook), "--overlap"), "go with --at or --every"),
        ((str(other),), "is no notebook"),
    ):
        with pytest.raises(DetError, match=re.escape(said)) as told:
            CliRunner().invoke(cli, ["submit", *words], catch_exceptions=False)
        assert len(str(told.value).splitlines()) == 1
