"""A user with a folder: a module and data beside the notebook, scripts, IPython, and code written for Determined."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from journey_kernel import Notebook, Ran, Script

import det_native as det
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

MODELS = """
import csv
import os

import torch

import det_native as det


def table():
    with open("data/points.csv") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file)]
    return torch.tensor(rows)


class Fit(det.pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        print("in", os.path.basename(os.getcwd()), sorted(name for name in os.listdir() if name[:2] != "__"))
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def _loader(self):
        data = table()
        return det.pytorch.DataLoader(torch.utils.data.TensorDataset(data[:, :1], data[:, 1:]), batch_size=4)

    build_training_data_loader = build_validation_data_loader = _loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}
"""

CONFIG = """
config = {
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 4, "lr": 0.1},
    "reproducibility": {"experiment_seed": 5},
}
"""

SCRIPT = """
import argparse
import sys

import det_native as det
import models

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
arguments = parser.parse_args()
print("arguments:", sys.argv[1:])

if __name__ == "__main__":
    config = {
        "name": f"lr {arguments.lr}",
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 4}},
        "hyperparameters": {"global_batch_size": 4, "lr": arguments.lr},
    }
    experiment = det.experimental.create(models.Fit, config)
    print("submitted", experiment.id)
"""

DETERMINED = """
import torch
import determined as det
from determined.pytorch import DataLoader, PyTorchTrial


class Old(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.1))

    def build_training_data_loader(self):
        x = torch.linspace(-1, 1, 8).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}
"""

DETERMINED_SCRIPT = """
import det_native.compat
from determined.experimental import create

from old_trial import Old

config = {
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 4},
}
print("submitted", create(Old, config).id)
"""


def value(notebook: Notebook, expression: str) -> object:
    """The value of an expression in the kernel."""
    return ast.literal_eval(notebook.run(f"print(repr({expression}))").stdout)


def files(ran: Ran) -> dict[str, str]:
    """Files and folders in the report of a submit, with their status."""
    return dict(re.findall(r"^(\S+) +(?:1 )?file +[\d.]+ \w+ .*?(new|already there)", ran.text, re.MULTILINE))


def submitted(text: str) -> int:
    """Number of the experiment that a script says it submitted."""
    return int(re.findall(r"submitted (\d+)", text)[0])


@pytest.fixture(scope="module", autouse=True)
def project(notebook: Notebook) -> Path:
    """The user's folder, and the cells above those that train: a test runs alone, too."""
    folder = notebook.folder
    (folder / "data").mkdir()
    (folder / "data" / "points.csv").write_text("".join(f"{x / 8},{x / 4 + 1}\n" for x in range(8)))
    (folder / "notes.txt").write_text("not needed by anything")
    shutil.copytree(folder / "data", folder / "project" / "data")
    (folder / "project" / "notes.txt").write_text("needed by nothing")
    (folder / "models.py").write_text(MODELS)
    (folder / "old_trial.py").write_text(DETERMINED)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "train_old.py").write_text(DETERMINED_SCRIPT)
    notebook.run("import det_native as det\nfrom models import Fit, table\npoints = table()")
    notebook.run(CONFIG)
    return folder


def test_a_module_and_data_beside_the_notebook_travel_along(notebook: Notebook) -> None:
    ran = notebook.run("slim = det.experimental.create(Fit, config)")
    assert files(ran) == {"models.py": "new", "data/points.csv": "new"}
    notebook.run("slim.wait()")
    assert "in work ['data', 'models.py']" in notebook.run("slim.logs()").text


@pytest.mark.long
def test_a_context_directory_is_the_working_directory_here_and_there(notebook: Notebook) -> None:
    local = notebook.run("here = det.experimental.create(Fit, config, local=True, context_dir='project')")
    assert "in project ['data', 'notes.txt']" in local.stdout
    assert value(notebook, "__import__('os').path.basename(__import__('os').getcwd())") == notebook.folder.name
    first = notebook.run("there = det.experimental.create(Fit, config, context_dir='project')")
    assert set(files(first)) == {"data/", "notes.txt", "models.py"}
    notebook.run("there.wait()")
    assert "in work ['data', 'models.py', 'notes.txt']" in notebook.run("there.logs()").text
    assert value(notebook, "here.history == there.history")


def test_an_unchanged_context_directory_is_not_sent_again(notebook: Notebook) -> None:
    cell = "again = det.experimental.create(Fit, config, context_dir='project')\nagain.kill()"
    notebook.run(cell)
    again = notebook.run(cell)
    assert len(files(again)) == 3
    assert set(files(again).values()) == {"already there"}
    new = [line for line in again.text.splitlines() if re.search(r" new\b", line) and "item" not in line]
    assert new
    assert all(re.match(r"\d+ cells |cell \[", line) for line in new), "only text of cells is new"


@pytest.mark.long
def test_a_declared_array_is_sent_once(notebook: Notebook, at_home: Home) -> None:
    notebook.run("import numpy as np\nlarge = np.random.default_rng().integers(0, 256, 20_000_000, dtype='uint8')")
    notebook.run(
        "class Large(Fit):\n    def train_batch(self, *batch):\n        assert large.nbytes == 20_000_000\n"
        "        return super().train_batch(*batch)"
    )
    # The cell that makes the array need not run again: its value is sent.
    first = notebook.run("one = det.experimental.create(Large, config, values=['large'])")
    assert re.search(r"^large +value +20\.0 MB .* new", first.text, re.MULTILINE)
    assert "default_rng" not in str([cell.source for cell in _program(at_home, value(notebook, "one.id"))])
    second = notebook.run("two = det.experimental.create(Large, {**config, 'max_restarts': 0}, values=['large'])")
    assert re.search(r"^large +value +20\.0 MB .* already there", second.text, re.MULTILINE)
    notebook.run("one.kill()\ntwo.wait()")
    assert value(notebook, "two.state.name") == "COMPLETED"


def _program(home: Home, experiment_id: object) -> list[object]:
    from det_native.client.connect import connect
    from det_native.client.http_source import HttpSource

    assert isinstance(experiment_id, int)
    return list(HttpSource(connect(start=False)).bundle(experiment_id).program.cells)


@pytest.mark.long
def test_a_script_keeps_its_arguments(project: Path, script: Script, at_home: Home) -> None:
    done = script("train.py", "--lr", "0.25", folder=project)
    experiment = det.experimental.attach(submitted(done.stdout)).wait()
    assert experiment.name == "lr 0.25"
    assert experiment.trials[0].hparams["lr"] == 0.25
    assert "arguments: ['--lr', '0.25']" in str(experiment.logs())
    # Every file of the program, and nothing of the rest of the folder.
    assert {row.what for row in experiment.report if row.how == "file"} == {"train.py", "models.py", "data/points.csv"}


@pytest.mark.long
def test_a_plain_ipython_session_submits_what_was_typed(project: Path, script: Script, at_home: Home) -> None:
    typed = "\n".join(
        [
            "import det_native as det",
            "from models import Fit",
            CONFIG,
            "print('submitted', det.experimental.create(Fit, config).id)",
        ]
    )
    done = script("-m", "IPython", "--no-banner", "--colors=NoColor", "-c", typed, folder=project)
    experiment = det.experimental.attach(submitted(done.stdout)).wait()
    assert experiment.state == "Completed"
    assert {row.what for row in experiment.report if row.how == "file"} == {"models.py", "data/points.csv"}


@pytest.mark.long
def test_a_command_overrides_what_would_be_sent(notebook: Notebook) -> None:
    ran = notebook.run(
        "other = det.experimental.create(Fit, {**config, 'name': 'other'}, command=['train.py', '--lr', '0.5'])\n"
        "other.wait()"
    )
    assert "train.py" in files(ran)
    assert "arguments: ['--lr', '0.5']" in notebook.run("other.logs()").text
    assert value(notebook, "other.trials[0].hparams['lr']") == 0.1, "the configuration is the one that was submitted"


@pytest.mark.long
def test_code_for_determined_runs_in_a_cell_and_in_a_script(
    notebook: Notebook, project: Path, script: Script, at_home: Home
) -> None:
    notebook.run("import det_native.compat")
    notebook.run(DETERMINED.replace("import determined as det", "import determined"))
    notebook.run("old = determined.experimental.create(Old, config)\nold.wait()")
    assert value(notebook, "(old.state.name, determined.pytorch.PyTorchTrial is det.pytorch.PyTorchTrial)") == (
        "COMPLETED",
        True,
    )
    done = script("train_old.py", folder=project)
    assert det.experimental.attach(submitted(done.stdout)).wait().state == "Completed"
    unknown = notebook.run("from determined import nonsense", fails=True)
    assert unknown.error.startswith("ImportError")


def test_no_output_holds_the_token(notebook: Notebook, at_home: Home) -> None:
    assert at_home.token.read_text().strip() not in str(notebook.document())
