"""On a cluster: a callback that several trainings share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel

pytestmark = [pytest.mark.slow, pytest.mark.long]

KERAS = """
import numpy as np
import tensorflow as tf
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)
config = {"reproducibility": {"experiment_seed": 1}}

def begin(**where):
    context = det.experimental.keras.init(config, **where)
    tf.keras.utils.set_random_seed(1)
    model = context.wrap_model(tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)]))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model
"""


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
    # On the worker of a later training, too, each of them is an experiment that can be waited for.
    keras.run("submitted[-1].wait()\nlater = model.fit(x, y, epochs=1, batch_size=16, verbose=0)")
    assert keras.value("[len(later.history['loss']), isinstance(later, tf.keras.callbacks.History)]") == [1, True]
