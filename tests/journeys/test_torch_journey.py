"""A user with a PyTorchTrial in a cell: trained here and on the cluster, with handles of one shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from journey_kernel import Notebook
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

CELLS = [
    "import torch\nimport det_native as det\nfrom det_native.pytorch import DataLoader, PyTorchTrial",
    """
def make_data():
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
""",
    """
def loss_of(model, batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x), y)
""",
    """
class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def build_training_data_loader(self):
        return DataLoader(make_data(), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return DataLoader(make_data(), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = loss_of(self.model, batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": loss_of(self.model, batch).item()}
""",
    """
config = {
    "name": "line",
    "hyperparameters": {"global_batch_size": 16, "lr": det.Categorical([0.01, 0.1])},
    "searcher": {"name": "grid", "metric": "error", "max_length": {"epochs": 2}},
    "records_per_epoch": 64,
    "min_validation_period": {"epochs": 1},
    "reproducibility": {"experiment_seed": 1},
}
single = {**config, "hyperparameters": {"global_batch_size": 16, "lr": 0.1}}
single["searcher"] = {**config["searcher"], "name": "single"}
""",
]


def value(notebook: Notebook, expression: str) -> object:
    """The value of an expression in the kernel."""
    return ast.literal_eval(notebook.run(f"print(repr({expression}))").stdout)


def once(word: str, act: Callable[[], None]) -> Callable[[str], None]:
    """A watcher of outputs that acts at the first one with `word`."""
    seen: list[str] = []

    def watch(text: str) -> None:
        if word in text and not seen:
            seen.append(text)
            act()

    return watch


SLOW = """
import time

class Slow(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 2:
            print("third batch", flush=True)
        if batch_idx > 2:
            time.sleep(0.02)
        return super().train_batch(batch, epoch_idx, batch_idx)

one = {**single, "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 5000}}}
"""


@pytest.fixture(scope="module", autouse=True)
def trained(notebook: Notebook) -> None:
    """The same training, here and on the cluster, and a search there."""
    for source in CELLS:
        notebook.run(source)
    notebook.run("here = det.experimental.create(Line, single, local=True, show='bar')")
    notebook.run("far = det.experimental.create(Line, config)\nfar.wait()")
    notebook.run("there = det.experimental.create(Line, single)\nthere.wait()")
    notebook.run(SLOW)


def test_a_local_run_shows_how_far_it_is(notebook: Notebook) -> None:
    [bar] = [data["text/plain"] for data in notebook.cells[len(CELLS)].shown]
    assert re.fullmatch(r"Trial 1: 100% error [\d.e-]+, loss [\d.e-]+", bar)


def test_a_cell_that_the_class_does_not_need_is_not_sent(notebook: Notebook) -> None:
    notebook.run("far.notebook('what_ran.ipynb')")
    sent = [cell.source for cell in nbformat.read(notebook.folder / "what_ran.ipynb", as_version=4).cells]
    assert set(CELLS[1:4]) <= {f"\n{source}\n" for source in sent} | set(sent)
    assert not any("local=True" in source for source in sent)


@pytest.mark.parametrize(
    "expression",
    [
        "e.state.name",
        "e.history",
        "[t.hparams for t in e.trials]",
        "[t.state.name for t in e.trials]",
        "[t.metrics('training') for t in e.trials]",
        "[t.metrics('validation') for t in e.trials]",
        "[t.history for t in e.trials]",
        "[(c.metrics, c.batch, c.hparams) for c in [e.top_checkpoint(), e.trials[0].top_checkpoint()]]",
        "[type(c.uuid).__name__ for t in e.trials for c in t.checkpoints[-1:]]",
        "[type(e.plot()).__name__, type(e.trials[0].plot('error')).__name__]",
        "type(e.logs()).__name__",
        "sorted(os.listdir(e.top_checkpoint().download(f'files-{e.id}')))",
        "e.top_checkpoint().load().model.weight.tolist()",
        "e.wait() is e",
        "e.kill()",
    ],
)
def test_handles_have_one_shape_and_the_same_numbers(notebook: Notebook, expression: str) -> None:
    notebook.run("import os")
    ran = notebook.run(f"print([repr({expression}) for e in (here, there)])")
    local, cluster = ast.literal_eval(ran.stdout.splitlines()[-1])  # kill() says that it has ended
    assert local == cluster


def test_metrics_are_rows_by_batches_counted_from_1(notebook: Notebook) -> None:
    rows = value(notebook, "far.trials[1].metrics('training')")
    assert isinstance(rows, list)
    assert [row["batch"] for row in rows] == list(range(1, 9))
    assert set(rows[0]) == {"batch", "loss"}
    assert value(notebook, "[row['batch'] for row in far.trials[0].metrics('validation')]") == [4, 8]
    best = "min(row['error'] for t in far.trials for row in t.metrics('validation'))"
    assert value(notebook, f"far.top_checkpoint().metrics['error'] == {best}")


@pytest.mark.long
def test_the_program_comes_back_as_a_notebook_that_runs(notebook: Notebook, environment: dict[str, str]) -> None:
    notebook.run("far.notebook('what_runs_again.ipynb')")
    path = notebook.folder / "what_runs_again.ipynb"
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    last = document.cells[-1]
    assert last.source == "far = det.experimental.create(Line, config)\nfar.wait()"
    last.source = "again = det.experimental.create(Line, config, local=True)\nagain.best_trial.hparams"
    client = NotebookClient(
        document, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(notebook.folder)}}
    )
    client.execute(env=environment)
    assert "'lr': 0.1" in last.outputs[-1].data["text/plain"]


def test_the_stop_button_ends_a_local_trial_with_a_checkpoint(notebook: Notebook) -> None:
    ran = notebook.run(
        "stopped = det.experimental.create(Slow, one, local=True)", watch=once("third batch", notebook.interrupt)
    )
    assert "with a checkpoint" in ran.stdout
    assert value(notebook, "(stopped.state.name, 2 < len(stopped.trials[0].metrics()) < 5000)") == ("CANCELED", True)
    assert value(notebook, "list(stopped.history)[:1]") == ["loss"]
    assert value(notebook, "type(stopped.top_checkpoint().load()).__name__") == "Slow"


@pytest.mark.long
def test_the_stop_button_ends_the_waiting_only(notebook: Notebook) -> None:
    notebook.run("endless = det.experimental.create(Slow, one)")
    for asked in ("endless.wait()", "endless.history"):
        waited = notebook.run(asked, watch=once("Experiment", notebook.interrupt), fails=True)
        assert waited.error == "KeyboardInterrupt: "
        assert "goes on running: experiment.wait() shows it again, experiment.stop() ends it." in waited.stdout
        assert f"----> 1 {asked}" in waited.traceback
        assert "det_native" not in waited.traceback
    assert value(notebook, "endless.state.name") == "ACTIVE"
    notebook.run("endless.kill()\nendless.wait()")
    assert value(notebook, "(endless.state.name, endless.trials[0].state.name)") == ("CANCELED", "CANCELED")


def test_beside_the_notebook_lies_only_what_was_asked_for(notebook: Notebook) -> None:
    names = {path.name.partition("-")[0] for path in Path(notebook.folder).iterdir()}
    assert names - {"what_runs_again.ipynb"} == {"what_ran.ipynb", "files"}  # that one comes from the long lane
