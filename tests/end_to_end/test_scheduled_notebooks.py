"""A notebook is submitted from the command line, at once or by a schedule, runs as a whole, and trains."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.errors import DetError

CELLS = [
    "batches = 4",
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
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": batches}},
}
experiment = det.experimental.create(Trial, config)
if hasattr(experiment, "wait"):
    experiment.wait(show="none")""",
    "print(experiment.state, experiment.trials[0].checkpoints[-1].batch)",
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """Write a notebook that no kernel has run."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": ["parameters"]} if number == 0 else {},
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
def test_a_notebook_is_submitted_now_and_by_a_schedule(notebook: Path, home: Path, tmp_path: Path) -> None:
    submitted = det(home, "submit", str(notebook), "-p", "batches=8", "--slots", "1", "--wait", "--beside")
    assert submitted.returncode == 0, submitted.stderr
    assert "Run 1 completed." in submitted.stdout
    assert "cell 5 of 6 (experiments 1)" in submitted.stdout, "the injected cell counts"
    [experiment] = json.loads(det(home, "experiment", "list", "--json").stdout)
    assert experiment["state"] == "COMPLETED"
    executed = tmp_path / "executed.ipynb"
    assert det(home, "experiment", "notebook", "1", str(executed), "--executed").returncode == 0
    content = json.loads(executed.read_text())
    assert content == json.loads((notebook.parent / "digits (experiment 1).ipynb").read_text())
    printed = ["".join(output.get("text", "")) for output in content["cells"][-1]["outputs"]]
    assert printed == ["Completed 8\n"], "the cells below the training ran when it had ended"

    here = det(home, "notebook", "submit", str(notebook), "--place", "local", "--test", "--wait")
    assert here.returncode == 0, here.stderr + here.stdout
    experiments = json.loads(det(home, "experiment", "list", "--json").stdout)
    assert [experiment["id"] for experiment in experiments] == [1], "a quick check is not recorded"

    later = det(home, "submit", str(notebook), "--every", "1d")
    assert "Schedule 1 (digits) runs it next at" in later.stdout, later.stderr
    [schedule] = json.loads(det(home, "schedule", "list", "--json").stdout)
    assert (schedule["state"], schedule["timing"]["every"], schedule["path"]) == ("ACTIVE", "1d", str(notebook))
    assert [run["state"] for run in json.loads(det(home, "notebook", "list", "--json").stdout)] == ["COMPLETED"] * 2


@pytest.mark.long
@pytest.mark.slow
def test_a_stopped_run_stops_the_experiment_that_it_waits_for(notebook: Path, home: Path) -> None:
    run = det(home, "submit", str(notebook), "-p", "batches=1000000")
    assert run.returncode == 0, run.stderr
    deadline = time.monotonic() + 120
    while not (runs := json.loads(det(home, "notebook", "list", "--json").stdout))[0]["experiments"]:
        assert not runs[0]["error"], runs
        assert time.monotonic() < deadline, runs
        time.sleep(0.5)
    assert "Run 1 stopped: It was stopped." in det(home, "notebook", "stop", "1").stdout
    waited = det(home, "experiment", "wait", "1")
    assert waited.returncode == 4, waited.stderr
    executed = det(home, "experiment", "notebook", "1", str(notebook.with_name("e.ipynb")), "--executed")
    assert executed.returncode == 0, executed.stderr


def test_wrong_times_and_files_are_one_sentence(notebook: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ipynb"
    other.write_text("{}")
    for words, sentence in (
        ((str(notebook), "--at", "soon"), "'soon' is no time"),
        ((str(notebook), "--at", "2001-01-01"), "has passed"),
        ((str(notebook), "--every", "often"), "is no time between two submissions"),
        ((str(notebook), "--every", "1d", "--timezone", "Mars/Olympus"), "is no time zone"),
        ((str(notebook), "--every", "1d", "--at", "22:00"), "exclude each other"),
        ((str(notebook), "--overlap"), "go with --at or --every"),
        ((str(notebook), "--wait", "--every", "1d"), "--wait does not go with"),
        ((str(notebook), "--limit", "soon"), "invalid duration 'soon'"),
        ((str(notebook), "-p", "batches"), "write NAME=VALUE"),
        ((str(notebook), "-p", "batch=1"), "check the spelling"),
        ((str(notebook), "--kernel", "nope"), "is not installed"),
        ((str(other),), "is not a notebook"),
    ):
        with pytest.raises((DetError, click.UsageError), match=re.escape(sentence)) as refused:
            CliRunner().invoke(cli, ["submit", *words], catch_exceptions=False, standalone_mode=False)
        assert len(str(refused.value).splitlines()) == 1
