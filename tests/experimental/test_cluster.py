"""From a cell to trained models on the embedded master, in a real notebook."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

import det_native as det
from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.client.home import read_token
from det_native.client.http_source import HttpSource
from det_native.client.session import Session
from det_native.errors import ArgumentError, NotFoundError
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

SETUP = """
import time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial
"""

TRIAL = """
def data():
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    return torch.utils.data.TensorDataset(x, 2 * x + 1)

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def build_training_data_loader(self):
        return DataLoader(data(), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return DataLoader(data(), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        x, y = batch
        return {"error": torch.nn.functional.mse_loss(self.model(x), y).item()}
"""

CONFIG = """
searcher = {"name": "random", "metric": "error", "max_length": {"epochs": 3}, "max_trials": 2}
config = {
    "name": "line",
    "searcher": searcher,
    "records_per_epoch": 64,
    "hyperparameters": {"global_batch_size": 8, "lr": det.Log(-3, -1)},
    "min_validation_period": {"epochs": 1},
}
single = {"name": "single", "metric": "error", "max_length": {"epochs": 3}}
"""

BROKEN = """
class Broken(Line):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 3:
            raise ValueError("I am broken")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

INTERRUPT = """
import _thread, threading

endless = det.experimental.create(Line, config | {"searcher": single | {"max_length": {"epochs": 10**6}}})

def interrupt():
    while not any(trial.state == "Running" for trial in endless.trials):
        time.sleep(0.05)
    _thread.interrupt_main()

threading.Thread(target=interrupt).start()
try:
    endless.wait()
except KeyboardInterrupt:
    print("state", endless.state)
"""

#: What a download has besides the files of the checkpoint.
BESIDE = ("manifest.json", "metadata.json", "program.zip")
LOAD = """
checkpoint = experiment.top_checkpoint()
trial = checkpoint.load()
x, y = data().tensors
print(abs(torch.nn.functional.mse_loss(trial.model(x), y).item() - checkpoint.metrics["error"]) < 1e-5)
"""


class Executed:
    """A notebook that has run."""

    def __init__(self, document: Any, cells: dict[str, Any], folder: Path, home: Home) -> None:
        self.document = document
        self.cells = cells
        self.folder = folder
        self.home = home

    def text(self, name: str) -> str:
        """Return all that a cell printed or showed as text."""
        parts = []
        for output in self.cells[name].outputs:
            if output.output_type == "stream":
                parts.append(output.text)
            elif output.output_type == "error":
                parts.append(f"{output.ename}: {output.evalue}")
            else:
                parts.append(output.data.get("text/plain", ""))
        return "\n".join(parts)

    def failed(self, name: str) -> bool:
        """Return whether a cell raised."""
        return any(output.output_type == "error" for output in self.cells[name].outputs)


CELLS = {
    "setup": SETUP,
    "trial": TRIAL,
    "config": CONFIG,
    "submit": "experiment = det.experimental.create(Line, config)",
    "show": "experiment",
    "wait": "experiment.wait()",
    "history": "experiment.history",
    "load": LOAD,
    "broken": BROKEN,
    "fail": "det.experimental.create(Broken, config | {'searcher': single, 'max_restarts': 1}).wait()",
    "test": "det.experimental.create(Line, config, test=True).wait()",
    "interrupt": INTERRUPT,
    "kill": "endless.kill()\nprint(endless.wait(timeout=60).state)",
    "write": "experiment.notebook('again.ipynb')",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executed]:
    """An executed notebook, and the master that it started: it outlives the kernel."""
    home, folder = Home(tmp_path_factory.mktemp("cluster-home")), tmp_path_factory.mktemp("notebook")
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(document, timeout=180, kernel_name="python3", allow_errors=True, resources=resources)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        # Its standbys come and go whatever test runs: their folders are not for the guard to watch.
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        for name in ("DET_MASTER", "DET_MASTER_ADDR", "DET_TOKEN"):
            patch.delenv(name, raising=False)
        client.execute()
        runtime = read_runtime(home)
        assert runtime is not None, document.cells[3].outputs
        yield Executed(document, dict(zip(CELLS, document.cells, strict=True)), folder, home)
        patch.setenv("DET_HOME", str(home.path))
        connect(start=False).call(routes.SHUT_DOWN, kill=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(runtime.pid).wait(timeout=120)


@pytest.fixture
def attached(notebook: Executed, monkeypatch: pytest.MonkeyPatch) -> Executed:
    """The notebook, with its home as the home of this process."""
    monkeypatch.setenv("DET_HOME", str(notebook.home.path))
    return notebook


def test_cells_that_should_work_do(notebook: Executed) -> None:
    failed = [name for name in notebook.cells if notebook.failed(name)]
    assert failed == ["fail"], "\n".join(notebook.text(name) for name in failed)


def test_submitting_shows_the_report_and_returns_at_once(notebook: Executed) -> None:
    text = notebook.text("submit")
    report, view, *_ = (each for each in notebook.cells["submit"].outputs if each.output_type == "display_data")
    assert re.match(r"Sent 4 of \d+ cells, [\d.]+ kB\n", report.data["text/plain"])
    assert "<details><summary" in report.data["text/html"], "folded"
    assert re.fullmatch(r"Experiment 1: line: completed, 2 trials, best error [\d.e-]+", view.data["text/plain"])
    for word in ("Starting a master ...", "Sending", "Checking"):
        assert word not in text, "what was said meanwhile has gone"
    assert "http" not in text, "in a notebook that would be a link, to a page that wants a token"


def test_what_is_shown_while_it_runs_is_saved_in_its_last_state(notebook: Executed) -> None:
    (shown,) = notebook.cells["show"].outputs
    assert re.fullmatch(r"Experiment 1: line: completed, 2 trials, best error [\d.e-]+", shown.data["text/plain"])
    assert "<b>Experiment 1</b>" in shown.data["text/html"]
    assert "random, 2 trials" in shown.data["text/html"]
    assert base64.b64decode(shown.data["image/png"]).startswith(b"\x89PNG")


def test_waiting_ends_with_the_curves(notebook: Executed) -> None:
    # Its value, the experiment, is shown already; what had ended before it was waited for is shown as a value.
    (view,) = notebook.cells["wait"].outputs
    waited = r"Experiment 1: line: completed, 2 trials, best error [\d.e-]+"
    ended = r"Experiment 1: line\n  state: Completed\n.*"
    assert re.fullmatch(f"{waited}|{ended}", view.data["text/plain"], re.DOTALL)
    assert base64.b64decode(view.data["image/png"]).startswith(b"\x89PNG")


def test_history_has_a_row_for_each_epoch(notebook: Executed) -> None:
    history = eval(notebook.text("history"))  # noqa: S307 (the repr of a dictionary of numbers, printed by our kernel)
    assert {name: len(values) for name, values in history.items()} == {"loss": 3, "val_error": 3}


def test_the_best_checkpoint_loads_back(notebook: Executed) -> None:
    assert notebook.text("load").strip().endswith("True")


def test_a_failure_names_cell_and_line_and_is_shown_once_per_kind(notebook: Executed) -> None:
    text = notebook.text("fail")
    assert "failed at batch 4, in cell [9], line 5:" in text
    assert "failed again at batch 4" in text
    assert "UserCodeError: Experiment 2 failed in cell [9], line 5: ValueError: I am broken (the trace" in text
    assert text.count("Cell [9], line 5, in train_batch") == 1


def test_quick_check_on_the_cluster_is_one_batch(notebook: Executed) -> None:
    assert "[test-mode] line" in notebook.text("test")
    assert "Experiment 3: [test-mode] line: completed" in notebook.text("test")


def test_a_quick_check_is_an_experiment_of_one_batch(attached: Executed) -> None:
    experiment = det.attach(3)
    assert experiment.state is ExperimentState.COMPLETED
    [trial] = experiment.trials
    for kind in ("training", "validation"):
        assert [row["batch"] for row in trial.metrics(kind)] == [1]


def test_interrupting_the_wait_leaves_the_experiment_running(notebook: Executed) -> None:
    assert "goes on running" in notebook.text("interrupt")
    assert "state Running" in notebook.text("interrupt")
    assert "Stopped" in notebook.text("kill")


def test_the_program_comes_back_as_a_notebook(notebook: Executed) -> None:
    written = nbformat.read(notebook.folder / "again.ipynb", as_version=4)
    nbformat.validate(written)
    sources = [cell.source for cell in written.cells if cell.cell_type == "code"]
    assert sources[-1] == "experiment = det.experimental.create(Line, config)"
    assert len(sources) == 4


def test_another_process_attaches_and_sees_the_same(attached: Executed, tmp_path: Path) -> None:
    experiment = det.attach(1)
    assert experiment.state is ExperimentState.COMPLETED
    assert repr(experiment.history) == repr(eval(attached.text("history")))  # noqa: S307 (as above)
    assert [trial.hparams for trial in experiment.trials] == [each.hparams for each in det.attach("1").trials]
    batches = [row["batch"] for row in experiment.trials[0].metrics("training")]
    assert batches == list(range(1, 25))
    checkpoint = det.experimental.Determined().get_checkpoint(experiment.top_checkpoint().uuid)
    folder = checkpoint.download(tmp_path / "checkpoint")
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.name not in BESIDE) == checkpoint.size
    with pytest.raises(NotFoundError):
        det.attach(999)


@pytest.mark.long
def test_handles_print_how_they_stand(attached: Executed) -> None:
    experiment = det.attach("1")
    assert (experiment.id, repr(experiment)) == (1, "Experiment(1)")
    assert re.fullmatch(r"Experiment 1: line: completed, 2 trials, best error [\d.e-]+", str(experiment))
    trial = experiment.trials[0]
    assert re.fullmatch(r"Trial 1 of experiment 1: completed, 24/24 batches, best error [\d.e-]+", str(trial))
    unreachable = Experiment(HttpSource(Session("http://127.0.0.1:9", "token")), 7)
    assert str(unreachable) == "Experiment(7)"


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "a", "", "²"])
def test_what_is_no_number_of_an_experiment_or_trial_is_refused(attached: Executed, number: Any) -> None:
    known = det.experimental.Determined()
    for ask in (det.attach, known.get_experiment, known.get_trial):
        with pytest.raises(ArgumentError, match=r"_id must be the number .*, from 1 on, not "):
            ask(number)
    with pytest.raises(ArgumentError, match="local-1: local runs have numbers like all experiments now"):
        known.get_experiment("local-1")


@pytest.mark.long
def test_events_are_replayed_to_their_end(attached: Executed) -> None:
    source = HttpSource(connect(start=False))
    events = list(source.events(2))
    assert [event.id for event in events] == sorted({event.id for event in events})
    assert {event.experiment_id for event in events} == {2}
    assert sum(event.type == "error" for event in events) == 2
    assert events[-1].data["state"] == "ERROR"
    assert list(source.events(2, after=events[-2].id)) == events[-1:]


@pytest.mark.long
def test_the_token_is_nowhere_to_be_seen(attached: Executed) -> None:
    token = read_token(attached.home)
    assert token
    assert token not in nbformat.writes(attached.document)
    session = connect(start=False)
    assert token not in f"{session!r} {HttpSource(session)!r} {det.attach(1)!r} {det.attach(1)._repr_mimebundle_()}"
