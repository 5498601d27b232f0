"""What trainings of every kind log, on a cluster and in the kernel: at which batch, and after a worker was killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, checkpoint_at, ended, running_kernel

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

TORCH = """
import det_native as det
import numpy as np
import torch
from det_native.pytorch import DataLoader, PyTorchTrial
from torch import nn

data = torch.utils.data.TensorDataset(torch.rand(32, 4), torch.rand(32, 1))

def configuration(**more):
    config = {
        "hyperparameters": {"global_batch_size": 8, "port": 0, "stops": ""},
        "records_per_epoch": 32,
        "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 2}},
    }
    return {**config, **more}

def loss_of(model, batch):
    return ((model(batch[0]) - batch[1]) ** 2).mean()
"""
KERAS = """
import det_native as det
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tensorflow as tf

x = np.random.default_rng(0).random((32, 4)).astype("float32")
y = x.sum(axis=1)

def configuration(**more):
    config = {
        "hyperparameters": {"global_batch_size": 8, "port": 0},
        "records_per_epoch": 32,
        "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 2}},
    }
    return {**config, **more}

def compiled():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    return model
"""
LOGGED = """
import json
trial = det.last_experiment().wait(show="none").trials[0]
print(json.dumps({"rows": trial.metrics("logged"), "media": [[m.kind, m.name, m.batch] for m in trial.media]}))
"""


@pytest.fixture(scope="module")
def loop_cells(torch_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel for loops and functions."""
    with running_kernel(torch_cluster, "logging loops", TORCH) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def torch_cells(torch_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel for trial classes."""
    with running_kernel(torch_cluster, "logging trials", GATE_CELL, TORCH, TRIAL) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def keras_cells(keras_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel for tf.keras."""
    with running_kernel(keras_cluster, "logging", KERAS) as kernel:
        yield kernel


def logged(kernel: Kernel) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    text = kernel.run(LOGGED).text  # a line may stand before it: which files have come
    found, _ = json.JSONDecoder().raw_decode(text[text.index('{"rows": ') :])
    return found["rows"], found["media"]


LOOP_OVER_EPOCHS = """
context = det.experimental.pytorch.init({options})
model = context.wrap_model(nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
loader = context.wrap(torch.utils.data.DataLoader(data, batch_size=8))
for epoch in context.epochs(2):
    for number, batch in enumerate(loader):
        loss = loss_of(model, batch)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        det.log(number=number)
    context.report(loss=loss)
    context.log(epoch=epoch)
    det.log_image("weights", model.weight)
"""
LOOP_OVER_BATCHES = """
context = det.experimental.pytorch.init({options})
model = context.wrap_model(nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
for number, batch in enumerate(context.train(DataLoader(data, batch_size=8), epochs=2)):
    loss = loss_of(model, batch)
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    context.report(loss=loss)
    det.log(number=number % 4)
    if number % 4 == 3:
        context.log(epoch=number // 4)
        context.log_image("weights", model.weight)
"""
FIT = """
context = det.experimental.pytorch.init({options})
model = context.wrap_model(nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))

def train_batch(batch, epoch_idx, batch_idx):
    loss = loss_of(model, batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    det.log(number=batch_idx % 4)
    if batch_idx % 4 == 3:
        context.log(epoch=epoch_idx)
        context.log_image("weights", model.weight)
    return {{"loss": loss}}

context.fit(DataLoader(data, batch_size=8), train_batch=train_batch, epochs=2)
"""


@pytest.mark.parametrize(
    ("program", "where"),
    [
        pytest.param(LOOP_OVER_EPOCHS, "cluster", id="epochs-cluster"),
        pytest.param(LOOP_OVER_EPOCHS, "local", id="epochs-local", marks=pytest.mark.long),
        pytest.param(LOOP_OVER_BATCHES, "cluster", id="batches-cluster", marks=pytest.mark.soak),
        pytest.param(LOOP_OVER_BATCHES, "local", id="batches-local", marks=pytest.mark.soak),
        pytest.param(FIT, "cluster", id="fit-cluster", marks=pytest.mark.long),
        pytest.param(FIT, "local", id="fit-local", marks=pytest.mark.soak),
    ],
)
def test_a_training_of_pytorch_logs_at_the_batch_that_it_is_at(loop_cells: Kernel, program: str, where: str) -> None:
    options = "local=True" if where == "local" else ""
    if program is not LOOP_OVER_EPOCHS:
        options = f"config=configuration(), {options}"
    loop_cells.run(program.format(options=options))
    rows, media = logged(loop_cells)
    expected = [{"batch": batch, "number": (batch - 1) % 4} for batch in range(1, 9)]
    expected[3]["epoch"], expected[7]["epoch"] = 0, 1
    assert rows == expected
    assert media == [["image", "weights", 4], ["image", "weights", 8]]


TRIAL = """
class Logs(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def build_training_data_loader(self):
        return DataLoader(data, batch_size=8)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        if str(batch_idx) in str(self.context.get_hparam("stops")).split():
            gate(self.context.get_hparam("port"), batch_idx)
        loss = loss_of(self.model, batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.context.log(number=batch_idx)
        self.context.log_text("note", batch_idx)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        det.log(evaluated=1)
        return {"loss": loss_of(self.model, batch)}
"""


@pytest.mark.long
def test_what_is_logged_after_the_last_checkpoint_is_that_of_the_run_that_goes_on(
    torch_cells: Kernel, cluster: Cluster, gate: Gate
) -> None:
    torch_cells.run(
        "experiment = det.experimental.create(Logs, configuration(hyperparameters="
        f"{{'global_batch_size': 8, 'port': {gate.port}, 'stops': '6'}}, min_checkpoint_period={{'batches': 4}}))\n"
        "print(experiment.id)"
    )
    experiment = cluster.attach(int(torch_cells.run("print(experiment.id)").text))
    visitor = gate.next()
    checkpoint_at(experiment, 4)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    [trial] = experiment.trials
    assert [(row["batch"], row["number"]) for row in trial.metrics("logged")] == [(b, b - 1) for b in range(1, 9)]
    assert [(medium.batch, medium.load()) for medium in trial.media] == [(b, str(b - 1)) for b in range(1, 9)]


@pytest.mark.soak
def test_on_several_slots_only_the_first_rank_counts(torch_cells: Kernel) -> None:
    torch_cells.run("experiment = det.experimental.create(Logs, configuration(resources={'slots_per_trial': 2}))")
    rows, media = logged(torch_cells)
    assert [(row["batch"], row["number"]) for row in rows] == [(b, b - 1) for b in range(1, 9)]
    assert rows[-1]["evaluated"] == 1
    assert media == [["text", "note", batch] for batch in range(1, 9)]


CALLBACK = """
context = det.experimental.keras.init({options})
model = context.wrap_model(compiled())
det.log(before=1)
plt.plot([1, 2]); plt.show()

class Notes(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        det.log(number=batch, rate=tf.constant(0.5))

    def on_epoch_end(self, epoch, logs=None):
        context.log({{"f1": epoch / 10, "loss": -1.0, "list": [1, 2]}})
        det.log_image("samples", np.ones((4, 8, 8, 3)))
        det.log_table("scores", pd.DataFrame({{"a": [1, 2]}}))
        det.log_histogram("weights", self.model.weights[0])
        det.log_image("none", "no such file.png")
        plt.figure()
        plt.title(f"Epoch {{epoch}}")
        plt.plot([1, 2, epoch])
        plt.show()
        display(pd.DataFrame({{"epoch": [epoch]}}))
        from IPython.display import display as shown
        figure = plt.figure(label="last figure")
        shown(figure)
        plt.close(figure)

history = model.fit(x, y, epochs=2, batch_size=8, callbacks=[Notes()], verbose=0)
"""


@pytest.mark.long
def test_a_callback_of_keras_logs_and_what_it_shows_on_a_worker_is_kept(keras_cells: Kernel) -> None:
    keras_cells.run(CALLBACK.format(options="config=configuration()"))
    rows, media = logged(keras_cells)
    assert [row["batch"] for row in rows] == list(range(1, 9))
    assert rows[0] == {"batch": 1, "number": 0, "rate": 0.5}
    assert rows[7] == {"batch": 8, "number": 3, "rate": 0.5, "f1": 0.1, "loss": -1.0}
    of_epoch = [
        ["image", "samples"],
        ["table", "scores"],
        ["histogram", "weights"],
        ["image", "Epoch #"],
        ["table", "table 1"],
        ["image", "last figure"],
    ]
    assert media == [[*each, batch] for batch in (4, 8) for each in of_epoch]
    told = keras_cells.run(
        "print(trial.metrics()[-1]['loss'] >= 0, history.history['loss'][-1] >= 0)\n"
        "print(trial.media['samples'][0].load().shape, trial.media['table 1'][-1].load().to_dict('list'))\n"
        "print(det.last_experiment().logs('warning'))\n"
        "print(type(det.last_experiment().plot('f1')).__name__)"
    ).text
    assert "True True" in told
    assert "(18, 18, 3) {'epoch': [1]}" in told
    assert told.count("det.log(list=...) was given a list, which is no number") == 1
    assert told.count("there is no file 'no such file.png'") == 1
    assert "CurvesFigure" in told


@pytest.mark.long
def test_in_the_kernel_figures_stay_under_the_cell_and_what_is_logged_is_kept(keras_cells: Kernel) -> None:
    keras_cells.run("%matplotlib inline")
    cell = keras_cells.run(CALLBACK.format(options="config=configuration(), local=True"))
    assert cell.text.count("<Figure size") == 5
    rows, media = logged(keras_cells)
    assert [row["batch"] for row in rows] == list(range(1, 9))
    assert (rows[7]["f1"], rows[7]["number"]) == (0.1, 3)
    of_epoch = [["image", "samples"], ["table", "scores"], ["histogram", "weights"]]
    assert media == [[*each, batch] for batch in (4, 8) for each in of_epoch]


KERAS_TRIAL = """
class Logs(det.keras.TFKerasTrial):
    def build_model(self):
        model = self.context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))]))
        model.compile("sgd", "mse")
        return model

    def build_training_data_loader(self):
        return x, y

    build_validation_data_loader = build_training_data_loader

    def keras_callbacks(self):
        context = self.context

        class Notes(tf.keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                context.log(number=batch)

            def on_test_end(self, logs=None):
                context.log_text("note", "validated")

        return [Notes()]

experiment = det.experimental.create(Logs, configuration(searcher={
    "name": "single", "metric": "val_loss", "max_length": {"epochs": 2}
}))
"""


@pytest.mark.soak
def test_a_trial_class_of_keras_logs_from_its_context(keras_cells: Kernel) -> None:
    keras_cells.run(KERAS_TRIAL)
    rows, media = logged(keras_cells)
    assert rows == [{"batch": batch, "number": (batch - 1) % 4} for batch in range(1, 9)]
    assert [each[:2] for each in media][-1:] == [["text", "note"]]
    assert media[-1][2] == 8


@pytest.mark.long
def test_the_command_lists_and_writes_what_was_logged(keras_cells: Kernel, keras_cluster: Cluster) -> None:
    keras_cells.run(CALLBACK.format(options="config=configuration()"))
    logged(keras_cells)
    number = keras_cells.run("print(trial.id)").text.strip()
    listed = keras_cluster.det("trial", "media", number)
    assert "samples" in listed
    assert "last figure" in listed
    folder = keras_cluster.folder / "written"
    found = json.loads(keras_cluster.det("trial", "media", number, "--download", str(folder), "--json"))
    assert {each["file"] for each in found} == {str(path) for path in folder.iterdir()}
    assert (folder / "samples-4.png").read_bytes().startswith(b"\x89PNG")
    rows = json.loads(keras_cluster.det("trial", "metrics", number, "--kind", "logged", "--json"))
    assert rows[0] == {"batch": 1, "number": 0.0, "rate": 0.5}


ESTIMATORS = """
import det_native as det
import numpy as np
import tensorflow as tf

X = np.random.default_rng(0).random((32, 4)).astype("float32")
Y = X[:, :3].argmax(1)

class Hook(tf.estimator.SessionRunHook):
    def __init__(self, log):
        self.log = log

    def after_run(self, run_context, run_values):
        self.log(step=1)

    def end(self, session):
        det.log_text("note", "end")

def records():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
"""
ESTIMATOR_TRIAL = """
class Iris(det.estimator.EstimatorTrial):
    def build_estimator(self):
        optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdagradOptimizer(0.1))
        columns = [tf.compat.v1.feature_column.numeric_column("x", shape=4)]
        return tf.compat.v1.estimator.DNNClassifier([8], columns, n_classes=3, optimizer=optimizer)

    def build_train_spec(self):
        data = lambda: self.context.wrap_dataset(records()).repeat().batch(8)
        return tf.estimator.TrainSpec(data, hooks=[Hook(self.context.log)])

    def build_validation_spec(self):
        return tf.estimator.EvalSpec(lambda: self.context.wrap_dataset(records()).batch(8), steps=None)

searcher = {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 4}}
det.experimental.create(Iris, {"hyperparameters": {"global_batch_size": 8}, "searcher": searcher})
"""
UNCHANGED = """
context = det.experimental.estimator.init(config={"hyperparameters": {"global_batch_size": 8}})
columns = [tf.feature_column.numeric_column("x", shape=4)]
estimator = tf.estimator.DNNClassifier([8], columns, n_classes=3, model_dir="model")
training = tf.estimator.TrainSpec(lambda: records().repeat().batch(8), max_steps=4, hooks=[Hook(det.log)])
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(lambda: records().batch(8)))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "program", [pytest.param(ESTIMATOR_TRIAL, marks=pytest.mark.soak), UNCHANGED], ids=["trial", "unchanged"]
)
def test_hooks_of_estimators_log_at_the_step_that_they_see(keras_cluster: Cluster, program: str) -> None:
    with running_kernel(keras_cluster, f"estimators {len(program)}", ESTIMATORS) as kernel:
        kernel.run(program)
        rows, media = logged(kernel)
    assert rows == [{"batch": batch, "step": 1} for batch in range(1, 5)]
    assert media == [["text", "note", 4]]
