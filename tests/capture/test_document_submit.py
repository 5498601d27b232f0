"""A document becomes an experiment: real processes, a real master, real training; and "here", in a real kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat
import psutil
import pytest
from document_process import WarmProcess, run_command
from jupyter_client.manager import KernelManager

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.display.fallback import last_state
from det_native.errors import UserCodeError
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

QUICKSTART = Path(__file__).parents[2] / "notebooks/01_quickstart.ipynb"

SETUP = "import torch\nimport det_native as det\nfrom det_native.pytorch import DataLoader, PyTorchTrial"
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
CONFIG = """config = {
    "name": "line", "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 16}},
    "hyperparameters": {"global_batch_size": 8, "lr": 0.1},
}"""
CREATE = "experiment = det.experimental.create(Line, config)\nexperiment.wait()\nopen('after.txt', 'w')"
EXPLORED = "# det-skip\nopen('explored.txt', 'w').write('this cell is not needed')"
# The line of the live view, "Experiment 1: line: queued ...": the name of the experiment in CONFIG stands in it.
SHOWN = ": line: "

Send = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a master that runs for this module."""
    home, temporary = Home(tmp_path_factory.mktemp("document-home")), tmp_path_factory.mktemp("document-temporary")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("DET_HOME", str(home.path)), ("DET_SLOTS", "cpu:2"), ("TMPDIR", str(temporary))):
            patch.setenv(name, value)
        subprocess.run([sys.executable, "-m", "det_native.client.command", "up"], check=True, capture_output=True)
    runtime = read_runtime(home)
    assert runtime is not None
    master = psutil.Process(runtime.pid)
    yield home
    started = master.children(recursive=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        connect(start=False).call(routes.SHUT_DOWN, kill=True)
    _, alive = psutil.wait_procs([master, *started], timeout=60)
    assert not alive


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProcess]:
    """What runs the command for all tests that do not look at how it is started."""
    process = WarmProcess(tmp_path_factory.mktemp("warm"))
    yield process
    process.close()


@pytest.fixture
def send(home: Home, warm: WarmProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Inspect or submit a document in a process of its own; by `run_command`: as the server extension starts it."""
    monkeypatch.setenv("DET_HOME", str(home.path))
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def run(what: str, *cells: str | dict[str, Any], by: Callable[..., Any] = warm.run, **more: Any) -> dict[str, Any]:
        written = [one if isinstance(one, dict) else {"id": f"id-{i}", "source": one} for i, one in enumerate(cells)]
        body = {"path": str(tmp_path / "book.ipynb"), "cells": written, "idempotency_key": uuid4().hex} | more
        variables = {"TMPDIR": str(temporary), "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
        done = by(what, json.dumps(body), tmp_path, {**os.environ, **variables})
        assert done.stdout, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert (done.code == 0) == answer["ok"]
        return answer | {"stderr": done.stderr}

    return run


def handle(answer: dict[str, Any]) -> Experiment:
    assert answer["ok"], answer
    return Experiment(HttpSource(connect(start=False)), answer["experiment"]["id"])


@pytest.mark.long
def test_a_refused_token_is_told_before_sending(send: Send, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = read_runtime(home)
    assert runtime is not None
    monkeypatch.setenv("DET_MASTER", runtime.url)
    monkeypatch.setenv("DET_TOKEN", "wrong")
    answer = send("inspect", SETUP, TRIAL, CONFIG, CREATE)
    assert (answer["master"], answer["problems"]) == (None, [])
    assert f"{runtime.url} refuses the token" in answer["master_problem"]


@pytest.mark.long
def test_a_document_runs_as_far_as_its_call_and_is_submitted_once(send: Send, tmp_path: Path) -> None:
    cells = (SETUP, TRIAL, CONFIG, EXPLORED, "%%writefile made.py\nnumber = 3", "%no_such_magic", CREATE)
    answer = send("submit", *cells, idempotency_key="the-same-key", by=run_command)
    assert "Running code cell 7 ..." in answer["stderr"]
    experiment = handle(answer)
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED
    assert not list(tmp_path.glob("*.txt"))
    assert (tmp_path / "made.py").read_text() == "number = 3\n"
    again = send("submit", *cells, idempotency_key="the-same-key")
    assert again.get("experiment") == answer["experiment"], again


@pytest.mark.parametrize(
    ("numbers", "title"),
    [
        pytest.param((None,) * 5, "code cell 2", id="places", marks=pytest.mark.soak),
        pytest.param((3, 1, 5, None, 4), "cell [1]", id="prompts", marks=pytest.mark.long),
    ],
)
def test_a_failure_has_the_cell_as_the_notebook_shows_it(send: Send, numbers: Sequence[int | None], title: str) -> None:
    broken = TRIAL.replace(
        "x, y = batch\n        loss", "x, y = batch\n        raise ValueError('bad batch')\n        loss"
    )
    sources = (SETUP, broken, CONFIG.replace('"name": "line"', '"max_restarts": 0'), CREATE, CREATE)
    cells: list[str | dict[str, Any]] = [
        {"id": f"id-{index}", "source": source, "execution_count": number, "executed": None, "tags": []}
        for index, (source, number) in enumerate(zip(sources, numbers, strict=True))
        if index != 3
    ]
    experiment = handle(send("submit", *cells))
    with pytest.raises(UserCodeError, match=rf"(?is){re.escape(title)}, line 20.*ValueError: bad batch") as caught:
        experiment.wait(timeout=240)  # in one line if it fails while this waits, for the traceback is shown then
    assert f"  {title[0].upper()}{title[1:]}, line 20, in train_batch" in caught.value.traceback
    assert f"ValueError in {title}: bad batch" in last_state(experiment, picture=False)["text/plain"]


@pytest.mark.soak
def test_a_computed_configuration_is_learnt_by_running_the_cells_above(send: Send, tmp_path: Path) -> None:
    computed = CONFIG + "\nprint('noise')\n!echo more noise\nconfig['records_per_epoch'] = len(data())"
    # An earlier call does nothing there, and neither does what follows the call in its cell.
    earlier = "config['name'] = det.experimental.create(Line, config) and 'learnt'"
    cells = [SETUP, TRIAL, EXPLORED, computed, earlier, CREATE]
    answer = send("submit", *cells, test=True, by=run_command)
    experiment = handle(answer)
    assert experiment.name == "[test-mode] learnt"
    assert experiment.detail().test
    assert experiment.detail().config["records_per_epoch"] == 64
    assert 3 not in [one.number for one in _program(experiment).cells]
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED
    assert not list(tmp_path.glob("*.txt"))


@pytest.mark.long
def test_earlier_calls_train_nothing_and_declared_values_travel(send: Send, tmp_path: Path) -> None:
    """In the process that runs the cells first: an earlier call gives a stand-in, the last one what it was given."""
    trial = TRIAL.replace("2 * x + 1", "slope * x + 1")
    call = "def train(settings):\n    return det.experimental.create(Line, settings, values=['slope'])"
    cells = [
        *(SETUP, trial, CONFIG, "import os\nslope = 2.0 if os.getpid() else 0", call),
        *("first = train(config)", "first.wait()\nopen('trained.txt', 'w').write('none')", "train(config)"),
    ]
    before = len(connect(start=False).call(routes.LIST_EXPERIMENTS))
    experiment = handle(send("submit", *cells))
    assert len(connect(start=False).call(routes.LIST_EXPERIMENTS)) == before + 1
    assert (tmp_path / "trained.txt").read_text() == "none"
    program = _program(experiment)
    numbers = [one.number for one in program.cells]
    assert {1, 2, 3, 5, 8} <= {*numbers}
    call = program.call
    assert [numbers[call.cell], numbers[call.running], call.occurrence] == [5, 8, 1]
    assert [row.cell for row in experiment.report if row.what == "slope"] == ["[4]"]
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED


def _program(experiment: Experiment) -> Any:
    return connect(start=False).call(routes.GET_BUNDLE, bundle_id=experiment.detail().bundle_id).program


@pytest.mark.parametrize(
    ("last", "where", "what"),
    [
        ("n = len(data())\nraise KeyError('gone')\nconfig['records_per_epoch'] = n", "Code cell 4, line 2", "KeyError"),
        ("config['name'] = missing", "Code cell 4, line 1", "name 'missing' is not defined"),
        ("config['records_per_epoch'] = 'x' + str(len(data()))", "records_per_epoch", ""),
        ("config['records_per_epoch'] = len(data())\nif not len(data()):\n    ", "Code cell 5", "was not made"),
    ],
)
def test_a_cell_that_fails_there_is_named(send: Send, last: str, where: str, what: str) -> None:
    cells = [SETUP, TRIAL, CONFIG, last, CREATE]
    if last.endswith("    "):
        cells[3:] = [last.splitlines()[0], f"if not len(data()):\n    {CREATE.splitlines()[0]}"]
    answer = send("submit", *cells)
    assert not answer["ok"]
    [problem] = answer["problems"]
    assert where in problem["where"]
    assert what in problem["what"]


@pytest.mark.soak
def test_the_quickstart_notebook_as_saved(send: Send, tmp_path: Path) -> None:
    """Keras, with the data's length in the configuration; up to its third section."""
    document = nbformat.read(QUICKSTART, as_version=4)
    cells = [
        {"id": one.id, "source": one.source, "execution_count": one.execution_count, "tags": []}
        for one in document.cells
        if one.cell_type == "code"
    ]
    inspected = send("inspect", *cells)
    assert inspected["call"]["kind"] == "create"
    assert inspected["problems"] == []
    upto = [one["id"] for one in cells].index("quickstart-10") + 1
    experiment = handle(send("submit", *cells[:upto], test=True))
    detail = experiment.detail()
    assert (detail.framework, detail.config["records_per_epoch"]) == ("keras", 1437)
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED


@pytest.mark.long
def test_what_fit_of_keras_is_given_fills_the_configuration(send: Send) -> None:
    cells = [
        "import numpy as np\nimport tensorflow as tf\nimport det_native as det\nx = np.ones((40, 1))\ny = np.ones(40)",
        "context = det.experimental.keras.init({'name': 'filled'})",
        "model = context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dense(1)]))\nmodel.compile('sgd', 'mse')",
        "first = model.fit(x, y, 4, 1, 0)",
        "model.fit(x, y, 8, 2, 0, validation_split=0.2)",
    ]
    inspected = send("inspect", *cells)
    assert [call["line"] for call in inspected["calls"]] == [1, 1]
    experiment = handle(send("submit", *cells))
    config = experiment.detail().config
    assert config["searcher"]["max_length"] == {"epochs": 2}
    assert config["searcher"]["metric"] == "val_loss"
    assert config["hyperparameters"]["global_batch_size"]["val"] == 8
    assert config["records_per_epoch"] == 32
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED


# Here ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def execute(home: Home, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Run code in a real kernel as a front end does; gives what was printed."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(tmp_path), env={**os.environ, "DET_HOME": str(home.path), "TMPDIR": str(tmp_path)})
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code: str, cell: str | None = None) -> str:
        printed: list[str] = []
        content = {"code": code, "silent": cell is None, "store_history": cell is not None, "user_expressions": {}}
        message = client.session.msg(
            "execute_request", {**content, "allow_stdin": False, "stop_on_error": False}, metadata={"cellId": cell}
        )
        client.shell_channel.send(message)
        while True:
            reply = client.get_iopub_msg(timeout=240)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = reply["content"]
            printed.append(content.get("text", "") + "\n".join(content.get("traceback", [])))
            printed.append(content.get("data", {}).get("text/plain", ""))
            if reply["content"].get("execution_state") == "idle":
                return "".join(printed)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


@pytest.mark.long
def test_here_trains_in_the_kernel_until_the_call_has_run(send: Send, execute: Callable[..., str]) -> None:
    sources = [SETUP, TRIAL, CONFIG, EXPLORED, "experiment = det.experimental.create(Line, config)"]
    here = send("inspect", *sources)["here"]
    assert here["cells"] == ["id-0", "id-1", "id-2", "id-4"]
    for failing in (False, True):
        assert execute(here["before"]) == ""
        printed = [execute(sources[int(name[-1])], name) for name in here["cells"]]
        assert "Trains in this kernel" in printed[-1]
        assert execute("print(experiment.id)", "look").startswith("local-")
        if failing:
            execute(here["before"])
            execute("1 / 0", "id-1")
        # It has ended by itself: the same cell submits again.
        said = execute("other = det.experimental.create(Line, config)", "id-4")
        steps = [said.index(step) for step in ("Asking the master", "Sending what", SHOWN)]
        assert steps == sorted(steps), "no wait that is not told"
        assert "Error" not in execute("other.kill()", "kill")  # a line says so where it had completed before
    execute(here["before"])
    assert execute(here["after"]) == ""
    assert SHOWN in execute(sources[4], "id-4")
    execute("experiment.kill()", "kill")


NATIVE = """
context = det.experimental.pytorch.init(config)
model = context.wrap_model(torch.nn.Linear(1, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=context.get_hparam("lr")))
loader = torch.utils.data.DataLoader(data(), batch_size=8)

def loss_of(batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x), y)

def evaluate_batch(batch):
    return {"error": loss_of(batch)}
"""
NATIVE_CONFIG = CONFIG.replace('"max_length": {"batches": 16}', '"max_length": {"epochs": 2}').replace(
    '"name": "line"', '"name": "line", "reproducibility": {"experiment_seed": 1}'
)
NATIVE_LOOP = """
model.train()
for batch in context.train(loader, validation_loader=loader, evaluate_batch=evaluate_batch):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
open("after.txt", "w")
"""
NATIVE_FIT = """
def train_batch(batch, epoch_idx, batch_idx):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

experiment = context.fit(loader, loader, train_batch=train_batch, evaluate_batch=evaluate_batch)
open("after.txt", "w")
"""


@pytest.mark.soak
def test_a_loop_in_a_later_cell_than_its_call_is_told_in_words(send: Send) -> None:
    setup, data = SETUP.replace(", PyTorchTrial", ""), TRIAL[: TRIAL.index("class Line")]
    call = "batches = context.train(loader, validation_loader=loader, evaluate_batch=evaluate_batch)"
    split = [call, "for batch in batches:\n    context.report(loss=loss_of(batch))"]
    answer = send("submit", setup, data, NATIVE_CONFIG, NATIVE, *split)
    assert not answer["ok"]
    [problem] = answer["problems"]
    assert "was not made" in problem["what"]
    assert "has to stand in the cell of that call, or run in the kernel" in problem["remedy"]


@pytest.mark.parametrize(
    ("kind", "call"), [pytest.param("fit", NATIVE_FIT, marks=pytest.mark.soak), ("train", NATIVE_LOOP)]
)
def test_a_native_pytorch_document_is_submitted(send: Send, tmp_path: Path, kind: str, call: str) -> None:
    setup = SETUP.replace(", PyTorchTrial", "")
    data = TRIAL[: TRIAL.index("class Line")]
    cells = [setup, data, NATIVE_CONFIG, EXPLORED, NATIVE, call]
    inspected = send("inspect", *cells)
    assert inspected["problems"] == []
    assert inspected["call"] | {"line": 0} == inspected["call"] | {"kind": kind, "framework": "torch", "line": 0}
    experiment = handle(send("submit", *cells))
    assert experiment.wait(timeout=240).state is ExperimentState.COMPLETED
    assert [row["batch"] for row in experiment.trials[0].metrics()] == list(range(1, 17))
    assert not list(tmp_path.glob("*.txt"))
