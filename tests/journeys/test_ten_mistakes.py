"""The ten mistakes of a first day, and the exact words for each."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from journey_kernel import Notebook, Ran

from det_native.schema.own_message import memory_advice

pytestmark = [pytest.mark.slow, pytest.mark.long]

KERAS = """
import numpy as np
import tensorflow as tf
import det_native as det

x, y = np.zeros((64, 4), "float32"), np.zeros(64, "int64")

def model_of(compiled=True):
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(2, "softmax")])
    if compiled:
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model

def searcher(metric):
    return {"searcher": {"metric": metric}}
"""

TORCH = """
import time
import numpy as np
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Base(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 4)), batch_size=16)

    build_validation_data_loader = build_training_data_loader

    def loss(self, batch, batch_idx):
        return self.model(batch[0]).square().mean()

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.loss(batch, batch_idx)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": self.model(batch[0]).square().mean().item()}

def config(**more):
    return {
        "name": "mistake",
        "hyperparameters": {"global_batch_size": 16},
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 4}},
        "scheduling_unit": 1,
        "max_restarts": 0,
    } | more
"""


def notebook_of(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], cell: str) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path_factory.mktemp("mistakes"), environment)
    notebook.run(cell)
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def keras(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Notebook]:
    """A notebook with a Keras model."""
    yield from notebook_of(tmp_path_factory, environment, KERAS)


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Notebook]:
    """A notebook with a class that trains."""
    yield from notebook_of(tmp_path_factory, environment, TORCH)


def test_1_a_misspelled_field(keras: Notebook) -> None:
    ran = keras.run("det.experimental.keras.init({'searchr': {}, 'searcher': {'max_lenght': 3}})", fails=True)
    assert ran.error == (
        "ConfigurationError: The experiment configuration is not valid:\n"
        "  - searcher.max_lenght: is not a field of the configuration. Did you mean searcher.max_length?\n"
        "  - searchr: is not a field of the configuration. Did you mean searcher?"
    )


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            "validation_accuracy",
            "searcher.metric is 'validation_accuracy', but validation metrics of Keras start with 'val_': set it to "
            "'val_accuracy'.",
        ),
        (
            "val_acc",
            "searcher.metric is 'val_acc', but the model is compiled to report val_loss, val_accuracy. Did you mean "
            "'val_accuracy'? Add the metric to model.compile(metrics=[...]), or set searcher.metric to one of these.",
        ),
    ],
)
def test_2_a_metric_that_is_not_there(keras: Notebook, metric: str, said: str) -> None:
    ran = keras.run(
        f"context = det.experimental.keras.init(searcher('{metric}'))\n"
        "context.wrap_model(model_of()).fit(x, y, validation_data=(x, y))",
        fails=True,
    )
    assert ran.error == f"TrialDefinitionError: {said}"


def test_3_a_model_that_is_not_wrapped(keras: Notebook) -> None:
    ran = keras.run("context = det.experimental.keras.init()\nmodel = model_of()\nmodel.fit(x, y, verbose=0)")
    assert ran.stderr.splitlines()[-1] == (
        "model was trained in this process, and nothing was submitted: the model is not wrapped. Write model = "
        "context.wrap_model(model) right after it is made, and model.fit() trains it on the cluster."
    )


def test_4_fit_before_compile(keras: Notebook) -> None:
    ran = keras.run(
        "context = det.experimental.keras.init()\ncontext.wrap_model(model_of(compiled=False)).fit(x, y)", fails=True
    )
    assert ran.error == "TrialDefinitionError: The model is not compiled. Call model.compile(...) before fit()."


def failed(notebook: Notebook, body: str, settings: str = "") -> tuple[Ran, Ran, str]:
    """Run a class whose loss is computed by `body`, and wait; return both cells and the experiment's number."""
    made = notebook.run(f"class Broken(Base):\n    def loss(self, batch, batch_idx):\n        {body}")
    waited = notebook.run(
        f"experiment = det.experimental.create(Broken, config({settings}), show='none')\nexperiment.wait(show='bar')",
        fails=True,
    )
    number = notebook.run(
        "print(experiment.id, experiment.trials[0].number, experiment.trials[0].detail().restarts)"
    ).stdout
    return made, waited, number


def cell_of(notebook: Notebook, ran: Ran) -> int:
    """Return the prompt of a cell."""
    return notebook.cells.index(ran) + 1


def test_5_an_error_in_train_batch(torch: Notebook) -> None:
    made, waited, number = failed(torch, "raise ValueError('the shapes differ')")
    experiment, _, restarts = number.split()
    assert waited.error.splitlines()[0] == (
        f"UserCodeError: Experiment {experiment} failed in cell [{cell_of(torch, made)}], line 3: "
        "ValueError: the shapes differ (the traceback is above)"
    )
    assert waited.text.count("ValueError: the shapes differ") == 2
    assert restarts == "0"


def test_6_out_of_memory(torch: Notebook) -> None:
    made, waited, number = failed(torch, "return torch.zeros(10**15)")
    experiment = number.split()[0]
    advice = memory_advice(16)
    assert advice == (
        "The batch size is 16 (global_batch_size): try a smaller one, such as 8. A smaller model, half precision, or "
        "data that are read piece by piece take less."
    )
    assert waited.error.startswith(
        f"UserCodeError: Experiment {experiment} failed in cell [{cell_of(torch, made)}], line 3: RuntimeError: "
    )
    assert advice in waited.error
    assert f"\n{advice}\n" in waited.text


def test_7_a_loss_that_becomes_nan(torch: Notebook) -> None:
    _, waited, number = failed(
        torch, "return self.model(batch[0]).mean() * (float('nan') if batch_idx else 1)", "nan='stop'"
    )
    experiment, trial, restarts = number.split()
    causes = (
        "Likely causes: a learning rate that is too high, gradients that explode (clip them), NaN in the data, or a "
        "logarithm or division of 0 in the loss."
    )
    line = f"Trial {trial} failed at batch 2: DivergedError: The loss became NaN. {causes}"
    assert line in waited.text.splitlines()
    assert "Traceback" not in waited.text
    assert waited.error.startswith(
        f"ExperimentFailedError: Experiment {experiment} failed.\nDivergedError: The loss became"
    )
    assert restarts == "0"
    log = torch.run("print(experiment.trials[0].logs().tail(9))").stdout
    assert f"DivergedError at batch 2: The loss became NaN. {causes}" in log


def test_7_a_loss_that_becomes_nan_where_the_training_goes_on(torch: Notebook) -> None:
    torch.run(
        "class Warned(Base):\n    def train_batch(self, batch, epoch_idx, batch_idx):\n"
        "        super().train_batch(batch, epoch_idx, batch_idx)\n"
        "        return {'loss': float('nan') if batch_idx == 2 else 1.0}"
    )
    waited = torch.run(
        "experiment = det.experimental.create(Warned, config(), show='none')\nexperiment.wait(show='bar')"
    )
    (line,) = {line for line in waited.text.splitlines() if line.startswith("Trial ") and "became NaN" in line}
    assert re.fullmatch(
        r"Trial \d+: The loss became NaN at batch 3; the training goes on \(nan: warn\)\. Likely causes: .*", line
    )
    assert torch.run("print(experiment.detail().state, experiment.detail().warning)").stdout.startswith(
        "Completed The loss became NaN at batch 3"
    )


def test_8_a_file_that_was_deleted(torch: Notebook) -> None:
    torch.run("np.save('kept.npy', np.ones(3))\nimport os")
    path = Path(torch.folder) / "data.npy"
    path.write_bytes((Path(torch.folder) / "kept.npy").read_bytes())
    made = torch.run(
        "class Reads(Base):\n    def build_training_data_loader(self):\n        np.load('data.npy')\n"
        "        return super().build_training_data_loader()"
    )
    path.unlink()
    waited = torch.run(
        "experiment = det.experimental.create(Reads, config(), show='none')\nexperiment.wait(show='bar')", fails=True
    )
    cell = cell_of(torch, made)
    assert (
        f"Cell [{cell}], line 3, reads 'data.npy', which is not there: the worker will not find it either. Correct the "
        f"path (it is looked for in {torch.folder.resolve()}), or let the code make the file."
    ) in " ".join(waited.text.split())
    assert waited.error.startswith("UserCodeError: Experiment")
    assert f"failed in cell [{cell}], line 3: FileNotFoundError: [Errno 2] No such file or directory: 'data.npy'" in (
        waited.error
    )


def test_9_a_kernel_that_is_restarted(
    torch: Notebook, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> None:
    newest = "print([row.id for row in det.experiments(limit=1)])"
    for other in notebook_of(tmp_path_factory, environment, TORCH):
        other.run(
            "class Hangs(Base):\n    def loss(self, batch, batch_idx):\n        time.sleep(600 * batch_idx)\n"
            "        return super().loss(batch, batch_idx)"
        )
        known = torch.run(newest).stdout
        other.begin("det.experimental.create(Hangs, config(), local=True)")
        deadline = time.monotonic() + 120
        while (number := torch.run(newest).stdout) == known and time.monotonic() < deadline:
            pass
        other.restart()
        lost = other.run("experiment.wait()", fails=True)
        assert lost.error == "NameError: name 'experiment' is not defined"
        other.run(f"import det_native as det\nexperiment = det.experiment({number.strip()}[0]).wait()")
        shown = other.run("print(experiment)").stdout
    assert re.search(
        r"stopped.*its kernel was restarted or ended in the middle of it, after batch \d of 4\.", shown, re.S
    )


def test_10_two_notebooks(
    torch: Notebook, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> None:
    slow = "class Slow(Base):\n    def loss(self, batch, batch_idx):\n        time.sleep(600)"
    both = "config(resources={'slots_per_trial': 2})"
    torch.run(slow)
    torch.run(f"first = det.experimental.create(Slow, {both}, show='none')")
    for other in notebook_of(tmp_path_factory, environment, TORCH):
        other.run(slow)
        other.run(f"second = det.experimental.create(Slow, {both}, show='none')")
        deadline = time.monotonic() + 60
        while "waits for" not in (said := other.run("print(second)").stdout) and time.monotonic() < deadline:
            pass
        number = torch.run("print(first.id)").stdout.strip()
        assert f"waits for 2 of 2 slots: #{number} has them" in said
        other.run("second.kill()")
    torch.run("first.kill()")
