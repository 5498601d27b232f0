"""On a cluster: what callbacks and functions of a call have collected is in the notebook, as after local training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel
from torch_program import TORCH

pytestmark = [pytest.mark.slow, pytest.mark.long]

KERAS = """
import os
import numpy as np
import tensorflow as tf
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)
config = {"reproducibility": {"experiment_seed": 1}, "max_restarts": 1}

def begin(**where):
    context = det.experimental.keras.init(config, **where)
    tf.keras.utils.set_random_seed(1)
    model = context.wrap_model(tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)]))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model
"""
CALLBACKS = """
losses, rates, count, flag = [], [], 0, None
labels = ["cat", "dog"]

class Meter:
    def __init__(self):
        self.values = []

class Watch(tf.keras.callbacks.Callback):
    def __init__(self, meter, out):
        super().__init__()
        self.meter, self.out, self.epochs = meter, out, 0
        self.data, self.labels = (x, y), labels

    def on_epoch_end(self, epoch, logs=None):
        global count
        count += 1
        self.epochs += 1
        losses.append(logs["loss"])
        self.meter.values.append(epoch)
        self.out.append(logs["loss"] / 2)
        if flag and epoch == 2 and not os.path.exists(flag):
            open(flag, "w").close()
            os._exit(9)

    def on_train_end(self, logs=None):
        self.ended = [*self.meter.values]

meter, halves = Meter(), []
watch = Watch(meter, halves)
stop = tf.keras.callbacks.EarlyStopping("loss", patience=2, min_delta=100)
rate = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(round(logs["loss"], 6)))
"""
FIT = "model.fit(x, y, epochs=5, batch_size=16, verbose=0, callbacks=[watch, stop, rate])"
SEEN = (
    "[losses, rates, count, meter.values, halves, watch.out is halves, watch.meter is meter, watch.epochs, "
    "watch.ended, stop.stopped_epoch, watch.model is model, watch.params['epochs']]"
)


@pytest.fixture(scope="module")
def keras_kernel(cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the program in Keras."""
    with running_kernel(cluster, "callbacks", GATE_CELL, KERAS) as kernel:
        yield kernel


@pytest.fixture
def keras(keras_kernel: Kernel) -> Iterator[Kernel]:
    """The same, which has nothing to do."""
    yield keras_kernel
    keras_kernel.clear()


def local_of(kernel: Kernel) -> object:
    """Return the values after training in the kernel."""
    kernel.run("model = begin(local=True)")
    kernel.run(CALLBACKS)
    kernel.run(FIT)
    return kernel.value(SEEN)


def test_callbacks_of_keras_have_what_local_training_leaves(keras: Kernel) -> None:
    local = local_of(keras)
    assert local[2:4] == [3, [0, 1, 2]]  # type: ignore[index]
    keras.run("model = begin()")
    keras.run(CALLBACKS)
    ran = keras.run(f"{FIT}\nprint('SEEN', {SEEN})")
    assert f"SEEN {local}" in ran.text, "the rest of the cell that trains"
    keras.run("model = begin()")
    keras.run(CALLBACKS)
    keras.run(FIT)
    ran = keras.run("print('LENGTH', len(rates))")
    assert "LENGTH 3" in ran.text, "a cell that reads no more than a list"
    assert keras.value(SEEN) == local


SHARED = """
class History(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.losses = []

    def on_epoch_end(self, epoch, logs=None):
        self.losses.append(logs["loss"])

class Passing(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        gate({port})

shared, history = tf.keras.callbacks.EarlyStopping("loss", patience=3), History()
"""


def test_trainings_that_share_a_callback_that_begins_anew_train_side_by_side(keras: Kernel, gate: Gate) -> None:
    keras.run(SHARED.format(port=gate.port))
    fit = "model.fit(x, y, epochs=1, batch_size=16, verbose=0, callbacks=[shared, history, Passing()])"
    keras.run(f"submitted = []\nfor turn in range(2):\n    model = begin()\n    submitted.append({fit})")
    waiting = [gate.next() for _ in range(2)]  # both have begun
    for visitor in waiting:
        visitor.go()
    assert keras.value("[len(history.losses), len(submitted)]") == [1, 2]


def test_a_list_that_is_bound_anew_is_the_users(keras: Kernel, gate: Gate) -> None:
    keras.run("model = begin()")
    keras.run(CALLBACKS.replace("global count\n", f"global count\n        gate({gate.port})\n"))
    keras.run(FIT)
    ran = keras.run("losses, count = [], 'mine'\nprint('SET', losses, count, labels, x.shape)")
    assert "SET [] mine ['cat', 'dog'] (64, 4)" in ran.text, "what callbacks only read is not waited for"
    assert "weights loaded" not in ran.text
    for _ in range(3):
        gate.next().go()
    assert keras.value("[losses, count, len(halves), meter.values]") == [[], "mine", 3, [0, 1, 2]]


def test_a_killed_worker_goes_on_with_what_callbacks_have_collected(keras: Kernel, tmp_path: Path) -> None:
    local, flag = local_of(keras), tmp_path / "killed"
    keras.run("config['min_checkpoint_period'] = {'epochs': 1}\nmodel = begin()")
    keras.run(CALLBACKS.replace("flag = [], [], 0, None", f"flag = [], [], 0, {str(flag)!r}"))
    keras.run(FIT)
    assert keras.value(SEEN) == local
    assert flag.exists()


TORCH_FIT = """
seen, count = [], 0

class Count(det.pytorch.PyTorchCallback):
    def __init__(self):
        self.epochs = []

    def on_training_epoch_end(self, epoch_idx):
        self.epochs.append(epoch_idx)

def train(batch, epoch_idx, batch_idx):
    global count
    count += 1
    seen.append(batch_idx)
    return train_batch(batch, epoch_idx, batch_idx)

counted = Count()
"""


def test_functions_of_pytorch_have_what_local_training_leaves(kernel: Kernel) -> None:
    found = []
    for where in ("local=True", ""):
        kernel.run(f"context, model, optimizer, train_batch = begin({where})")
        kernel.run(TORCH_FIT)
        kernel.run("context.fit(data, train_batch=train, epochs=3, callbacks=[counted])")
        found.append(kernel.value("[seen, count, counted.epochs]"))
    assert found[0] == found[1] == [[*range(12)], 12, [0, 1, 2]]


TRIAL = """
losses, reached, labels = [], 0, ["loss"]

class Fit(det.pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.1))

    def build_training_data_loader(self):
        return det.pytorch.DataLoader(TensorDataset(x, y), 16)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        global reached
        reached += 1
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        losses.append(loss.item())
        return {labels[0]: loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}

searcher = {"name": "single", "metric": "error", "max_length": {"batches": 2}}
of_trial = {"searcher": searcher, "hyperparameters": {"global_batch_size": 16}}
"""


def test_what_the_code_of_trials_changes_is_told_where_it_is_read(cluster: Cluster) -> None:
    with running_kernel(cluster, "trials", GATE_CELL, TORCH, TRIAL) as kernel:
        ran = kernel.run("experiment = det.experimental.create(Fit, of_trial)\nprint('READ', len(losses), labels)")
        assert "`losses` is changed by the code of experiment" in ran.text
        assert "`reached`" not in ran.text
        assert "`labels`" not in ran.text
        assert "`reached` is changed by the code" in kernel.run("experiment.wait()\nprint(reached)").text
        assert "is changed" not in kernel.run("print(reached, losses, labels)").text, "once"
        kernel.run("experiment = det.experimental.create(Fit, of_trial)\nexperiment.wait()")
        ran = kernel.run("losses = [1]\nprint('OWN', losses)")
        assert "OWN [1]" in ran.text
        assert "is changed" not in ran.text
