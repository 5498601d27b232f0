"""On a cluster: what callbacks and functions of a call have collected is in the notebook, as after local training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel

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


def test_trainings_that_share_a_callback_train_side_by_side(keras: Kernel, gate: Gate) -> None:
    keras.run(SHARED.format(port=gate.port))
    fit = "model.fit(x, y, epochs=1, batch_size=16, verbose=0, callbacks=[shared, history, Passing()], wait=False)"
    keras.run(f"submitted = []\nfor turn in range(2):\n    model = begin()\n    submitted.append({fit})")
    waiting = [gate.next() for _ in range(2)]  # both have begun
    for visitor in waiting:
        visitor.go()
    keras.run("det.wait(submitted)")
    assert keras.value("[len(history.losses), len(submitted)]") == [1, 2]


def test_a_list_that_is_bound_anew_is_the_users(keras: Kernel, gate: Gate) -> None:
    keras.run("model = begin()")
    keras.run(CALLBACKS.replace("global count\n", f"global count\n        gate({gate.port})\n"))
    keras.run(f"later = {FIT[:-1]}, wait=False)")
    keras.run("losses, count = [], 'mine'")
    for _ in range(3):
        gate.next().go()
    keras.run("later.wait()")
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
