"""A search of short trials on one slot, over the same work in one process."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from notebook_kernel import Kernel

SEARCHES, TRIALS = 4, 10

_TORCH = """
import time
import torch
from torch import nn
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

torch.set_num_threads(1)

def make_model():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

def make_dataset():
    return torch.utils.data.TensorDataset(torch.zeros(640, 64), torch.zeros(640, dtype=torch.long))

def loss_of(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])

class Short(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(make_model())
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("rate"))
        self.optimizer = context.wrap_optimizer(optimizer)

    def build_training_data_loader(self):
        return DataLoader(make_dataset(), batch_size=32, shuffle=True)

    def build_validation_data_loader(self):
        return DataLoader(make_dataset(), batch_size=32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        time.sleep(0.024)
        loss = loss_of(self.model, batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": loss_of(self.model, batch)}

def work():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in torch.utils.data.DataLoader(make_dataset(), batch_size=32, shuffle=True):
        time.sleep(0.024)
        loss_of(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        for batch in torch.utils.data.DataLoader(make_dataset(), batch_size=32):
            loss_of(model, batch)
"""
_TORCH_SUBMIT = "experiment = det.experimental.create(Short, configuration)"

_KERAS = """
import time
import numpy as np
import tensorflow as tf
import det_native as det

x, y = np.zeros((640, 64), "float32"), np.zeros(640, "int64")

class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)

def make_model():
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Dense(64, "relu", input_shape=(64,)), layers.Dense(10)])

def train(model, rate):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(rate), loss)
    return model.fit(x, y, batch_size=32, epochs=1, validation_data=(x, y), verbose=0, callbacks=[Slow()])

def work():
    train(make_model(), 0.01)
"""
_KERAS_SUBMIT = """
context = det.experimental.keras.init(configuration)
experiment = train(context.wrap_model(make_model()), context.get_hparam("rate"))
"""

_CONFIGURATION = """
def configured(trials):
    return {
        "hyperparameters": {"global_batch_size": 32, "rate": {"type": "double", "minval": 0.001, "maxval": 0.1}},
        "searcher": {
            "name": "random", "metric": "val_loss", "max_trials": trials, "max_length": {"batches": 20},
        },
        "records_per_epoch": 640,
        "resources": {"max_slots": 1},
    }
"""

_PERIODS = """
from datetime import datetime
ends = sorted(datetime.fromisoformat(trial.detail().ended) for trial in experiment.trials)
periods = [(after - before).total_seconds() for before, after in zip(ends, ends[1:])]
"""

_WORK = """
times = []
for _ in range({count}):
    begin = time.perf_counter()
    work()
    times.append(time.perf_counter() - begin)
"""


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.strip("[]").split(",")]


@pytest.mark.parametrize(
    ("framework", "definition", "submit"), [("PyTorch", _TORCH, _TORCH_SUBMIT), ("Keras", _KERAS, _KERAS_SUBMIT)]
)
def test_short_trials(
    paired: Any,
    kernel: Kernel,
    figure: Callable[[str, str, str, bool], None],
    framework: str,
    definition: str,
    submit: str,
) -> None:
    kernel.run(definition)
    kernel.run(_CONFIGURATION)
    ours: list[float] = []
    own: list[float] = []
    for trials in (3, *[TRIALS] * SEARCHES):
        kernel.run(f"configuration = configured({trials})")
        kernel.run(submit)
        kernel.run("experiment.wait()")
        if trials == TRIALS:  # The first search starts the master, and tells it which framework to keep warm.
            found = _numbers(kernel.run(_PERIODS, "periods"))
            ours += found
            own += _numbers(kernel.run(_WORK.format(count=len(found)), "times"))
    what = f"a trial of half a second with {framework}, of {SEARCHES * TRIALS} in turn"
    paired.of(f"{what}, over the same work in one process", list(zip(ours, own, strict=True)), goal=2.0)
    cost = statistics.median(ours) - statistics.median(own)
    figure(f"{what}: over its own work", f"{cost:.2f} s", "≤ 0.5 s", cost <= 0.5)
