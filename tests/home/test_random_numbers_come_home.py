"""On a cluster: after a call of Keras's ``fit()`` the notebook draws what it draws after plain Keras's."""

from __future__ import annotations

import pytest
from faults import Cluster, running_kernel
from keras_generation import only_keras_2

pytestmark = [pytest.mark.slow, only_keras_2]

PROGRAM = """
import random
import numpy as np
import tensorflow as tf
from tensorflow import keras
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)

class Drawing(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        random.random(), np.random.rand(), tf.random.uniform(())

    def on_train_end(self, logs=None):
        random.random(), np.random.rand(), tf.random.uniform(())

class Rows(keras.utils.Sequence):
    def __init__(self):
        self.read = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.read += 1
        rows = np.random.randint(0, 64, 16)
        return x[rows] + random.random(), y[rows]

def seeded():
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model, Rows()

def drawn():
    initial = float(keras.initializers.GlorotUniform()((1, 1))[0, 0])
    return [random.random(), np.random.rand(), float(tf.random.uniform(())), initial]
"""
BEGUN = "context = det.experimental.keras.init()\nmodel, rows = seeded()"
FIRST = "model.fit(rows, epochs=2, verbose=0, callbacks=[Drawing()]).history['loss'][-1]"
SECOND = "model.fit(x, y, epochs=1, verbose=0, callbacks=[Drawing()]).history['loss'][-1]"


def test_a_notebook_draws_on_as_after_plain_keras(cluster: Cluster) -> None:
    with running_kernel(cluster, "random", PROGRAM, BEGUN) as kernel:
        plain: list[list[float]] = []
        here: list[list[float]] = []
        for values, wrapped in ((here, "model = context.wrap_model(model)"), (plain, "model, rows = seeded()")):
            kernel.run(wrapped)
            for fit in (FIRST, SECOND):
                kernel.run(f"loss = {fit}")
                values.append(kernel.value("[loss, rows.read, *drawn()]"))
        assert here == plain
