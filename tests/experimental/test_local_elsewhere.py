"""Checkpoints of runs here, of a notebook and of scripts, loaded by another process after all of them have gone."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from forked_programs import ForkedPrograms
from nbclient import NotebookClient

import det_native as det

pytestmark = pytest.mark.slow

SHAPES = """
import csv

UNITS = 3

def points():
    with open("line.csv") as stream:
        return [[float(x), float(y)] for x, y in csv.reader(stream)]
"""

TORCH = """
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial
from shapes import UNITS, points

def data():
    x, y = torch.tensor(points()).split(1, dim=1)
    return torch.utils.data.TensorDataset(x, y)

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(1, UNITS), torch.nn.Linear(UNITS, 1)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def build_training_data_loader(self):
        return DataLoader(data(), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return DataLoader(data(), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}

config = {
    "searcher": {"name": "grid", "metric": "error", "max_length": {"batches": 4}},
    "hyperparameters": {"global_batch_size": 4, "lr": det.Categorical([0.01, 0.1])},
}
"""

TORCH_RUN = """
experiment = det.experimental.create(Line, config, local=True)
print("done", experiment.id, experiment.top_checkpoint().load().model(torch.tensor([[0.5]])).tolist())
"""

KERAS = """
import tensorflow as tf
import det_native as det
from shapes import UNITS, points

config = {"hyperparameters": {"rate": det.Log(-3, -1), "global_batch_size": 4}}
context = det.experimental.keras.init(config, local=True)
model = context.wrap_model(
    tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(UNITS), tf.keras.layers.Dense(1)])
)
model.compile(tf.keras.optimizers.SGD(context.get_hparam("rate")), "mse")
"""

KERAS_RUN = """
x, y = tf.split(tf.constant(points()), 2, axis=1)
model.fit(x.numpy(), y.numpy(), epochs=2, verbose=0)
experiment = context.experiment
print("done", experiment.id, experiment.top_checkpoint().load().predict(tf.constant([[0.5]]), verbose=0).tolist())
"""

PROGRAMS = {"torch": (TORCH, TORCH_RUN), "keras": (KERAS, KERAS_RUN)}

LOAD = {
    "torch": """
import sys, json, torch
import det_native as det
for name in sys.argv[1:]:
    trial = det.attach(name).top_checkpoint().load()
    print("loaded", name, json.dumps(trial.model(torch.tensor([[0.5]])).tolist()))
    assert type(trial).__name__ == "Line"
""",
    "keras": """
import sys, json
import det_native as det
for name in sys.argv[1:]:
    checkpoint = det.attach(name).top_checkpoint()
    model = checkpoint.load()
    import tensorflow as tf
    print("loaded", name, json.dumps(model.predict(tf.constant([[0.5]]), verbose=0).tolist()))
    assert abs(float(model.optimizer.learning_rate.numpy()) - checkpoint.hparams["rate"]) < 1e-7
""",
}


@dataclass(frozen=True)
class Runs:
    """What was trained: the id of each run and what its model predicted, by framework and origin."""

    home: Path
    environment: dict[str, str]
    found: dict[tuple[str, str], tuple[str, list[list[float]]]]


def python(framework: str, environment: dict[str, str], folder: Path, *arguments: str) -> str:
    """Run a program in a folder, in a process that has the framework imported; return its output."""
    started = {"torch": "torch", "keras": "tensorflow"}[framework]
    with ForkedPrograms.there(started) as programs:
        [code], [output] = programs.run(Path(environment["TMPDIR"]), [[*arguments]], environment, within=folder)
    assert code == 0, output
    return output


def told(output: str, word: str) -> list[tuple[str, list[list[float]]]]:
    """Return id and prediction of every line that begins with a word."""
    lines = [line.split(maxsplit=2) for line in output.splitlines() if line.startswith(word)]
    return [(name, json.loads(rest)) for _, name, rest in lines]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, torch_programs: ForkedPrograms, tensorflow_programs: ForkedPrograms
) -> Runs:
    """A run of each framework: one from a script, one from a notebook."""
    return _trained(tmp_path_factory, script="torch", notebook="keras")


@pytest.fixture(scope="module")
def runs_the_other_way_round(
    tmp_path_factory: pytest.TempPathFactory, torch_programs: ForkedPrograms, tensorflow_programs: ForkedPrograms
) -> Runs:
    """The same with the frameworks exchanged."""
    return _trained(tmp_path_factory, script="keras", notebook="torch")


def _trained(tmp_path_factory: pytest.TempPathFactory, *, script: str, notebook: str) -> Runs:
    """Train with one framework in a script, with the other one in a notebook. The folder they ran in is gone."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "PYTEST_"))}
    environment = {
        **kept,
        "DET_HOME": str(home),
        "TMPDIR": str(tmp_path_factory.mktemp("temporary")),
        "OMP_NUM_THREADS": "1",
    }
    (folder / "shapes.py").write_text(SHAPES)
    (folder / "line.csv").write_text("".join(f"{x / 8},{2 * x / 8 + 1}\n" for x in range(-8, 8)))
    found = {}
    (folder / "train.py").write_text("".join(PROGRAMS[script]))
    (found[script, "script"],) = told(python(script, environment, folder, "train.py"), "done")
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in PROGRAMS[notebook]])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(document, timeout=120, kernel_name="python3", resources=resources).execute(env=environment)
    text = "".join(output.get("text", "") for output in document.cells[1].outputs)
    (found[notebook, "notebook"],) = told(text, "done")
    shutil.rmtree(folder)
    return Runs(home, environment, found)


def check_that_a_fresh_process_loads(runs: Runs, folder: Path) -> None:
    for (framework, _), (name, prediction) in runs.found.items():
        program = Path(runs.environment["TMPDIR"]) / "load.py"
        program.write_text(LOAD[framework])
        [(loaded, again)] = told(python(framework, runs.environment, folder, str(program), name), "loaded")
        assert loaded == name
        assert again[0] == pytest.approx(prediction[0], rel=1e-5)
    assert not list(folder.iterdir())


def check_the_notebook_of(runs: Runs, framework: str, written: Path) -> None:
    name, _ = runs.found[framework, "notebook"]
    document = nbformat.read(det.attach(name).notebook(written), as_version=4)
    sources = [cell.source.strip() for cell in document.cells if cell.cell_type == "code"]
    assert sources == [source.strip() for source in PROGRAMS[framework]]


@pytest.mark.long
def test_a_fresh_process_loads_what_a_script_and_a_notebook_trained(runs: Runs, tmp_path: Path) -> None:
    check_that_a_fresh_process_loads(runs, tmp_path)


def test_the_program_is_there_as_a_notebook_too(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(runs.home))
    check_the_notebook_of(runs, "keras", tmp_path / "what_ran.ipynb")


def test_runs_share_the_blobs_of_their_programs(runs: Runs) -> None:
    local = runs.home / "local"
    manifests = [json.loads(path.read_text()) for path in local.glob("*/bundle.json")]
    assert len(manifests) == 2
    shapes = {entry["sha256"] for each in manifests for entry in each["files"] if entry["path"] == "shapes.py"}
    assert len(shapes) == 1
    assert len(list((local / "blobs").glob(f"??/{shapes.pop()}"))) == 1


@pytest.mark.long
def test_the_same_with_the_frameworks_exchanged(
    runs_the_other_way_round: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_that_a_fresh_process_loads(runs_the_other_way_round, tmp_path)
    monkeypatch.setenv("DET_HOME", str(runs_the_other_way_round.home))
    check_the_notebook_of(runs_the_other_way_round, "torch", tmp_path / "what_ran.ipynb")
