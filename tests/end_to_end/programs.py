"""The cells that the tests of faults run: small models with everything that makes a continuation hard."""

from __future__ import annotations

from faults import GATE_CELL

# 40 records, 8 a batch: 3 epochs of 5 batches; checkpoints after 3, 6, 9 ... are in mid-epoch.
BATCHES = 15

# Where a worker comes to the gate: at its start, before the batches `stops`. In the batches `holds` it then waits until
# it has heard from the master that it is to end.
CONFIG = """
def configuration(**changes):
    places = {"starts": False, "stops": "", "holds": "", "port": 0}
    hyperparameters = {"global_batch_size": 8} | places | changes.pop("hyperparameters", {})
    searcher = {"name": "single", "metric": "val_loss", "max_length": {"epochs": 3}} | changes.pop("searcher", {})
    return {
        "name": "fault",
        "hyperparameters": hyperparameters,
        "searcher": searcher,
        "records_per_epoch": 40,
        "scheduling_unit": 1,
        "min_validation_period": {"epochs": 1},
        "min_checkpoint_period": {"batches": 3},
        "checkpoint_policy": "none",
        "reproducibility": {"experiment_seed": 11},
        "max_restarts": 2,
    } | changes
"""

TORCH_SETUP = """
import os
import signal
import sys
import time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial
"""

TORCH_TRIAL = """
class Digits(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        layers = [torch.nn.Linear(6, 16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 3)]
        self.model = context.wrap_model(torch.nn.Sequential(*layers))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.optimizer = context.wrap_optimizer(optimizer)

    def loader(self, shuffle):
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(40, 6, generator=generator)
        return DataLoader(torch.utils.data.TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=shuffle)

    def build_training_data_loader(self):
        if self.context.get_hparam("starts"):
            gate(self.context.get_hparam("port"), "start")
        return self.loader(True)

    def build_validation_data_loader(self):
        return self.loader(False)

    def visit(self, batch_idx):
        if str(batch_idx + 1) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), batch_idx + 1)
        if str(batch_idx + 1) in self.context.get_hparam("holds").split():
            until_told()

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.visit(batch_idx)
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        x, y = batch
        return {"val_loss": torch.nn.functional.cross_entropy(self.model(x), y)}
"""

TORCH_CREATE = "experiment = det.experimental.create(Digits, configuration(hyperparameters=settings))"

# A loaded checkpoint is the trial, or the model of a program without one.
TORCH_END = """
def end_of(number):
    trial = det.attach(number).trials[0]
    loaded = trial.checkpoints[-1].load()
    values = getattr(loaded, "model", loaded).state_dict().values()
    rows = [trial.metrics(kind) for kind in ("training", "validation")]
    return [[value.numpy().tobytes().hex() for value in values], *rows]
"""

# For trials on several slots: which records a rank has had, and who stands at the gate, is said with the rank.
RANKED = """
class Ranked(Digits):
    @property
    def rank(self):
        return self.context.distributed.get_rank()

    def loader(self, shuffle):
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(40, 6, generator=generator)
        data = torch.utils.data.TensorDataset(x, x[:, :3].argmax(1), torch.arange(40))
        return DataLoader(data, batch_size=self.context.get_per_slot_batch_size(), shuffle=shuffle)

    def visit(self, batch_idx):
        if str(batch_idx + 1) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), f"{batch_idx + 1} {self.rank}")
        if self.rank == 0 and str(batch_idx + 1) in self.context.get_hparam("holds").split():
            until_told()

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y, number = batch
        print("records", epoch_idx, *number.tolist())
        return super().train_batch((x, y), epoch_idx, batch_idx)

    def evaluate_batch(self, batch):
        return super().evaluate_batch(batch[:2])
"""

NATIVE_SETUP = """
import torch
import det_native as det
"""

NATIVE_OBJECTS = """
context = det.experimental.pytorch.init(configuration(hyperparameters=settings), wait=False)
layers = [torch.nn.Linear(6, 16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 3)]
model = context.wrap_model(torch.nn.Sequential(*layers))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
mode = det.pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH
scheduler = context.wrap_lr_scheduler(torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95), mode)

def loader(shuffle):
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(3))
    data = torch.utils.data.TensorDataset(x, x[:, :3].argmax(1))
    return torch.utils.data.DataLoader(data, batch_size=8, shuffle=shuffle)

def visit(batch_idx):
    if str(batch_idx + 1) in context.get_hparam("stops").split():
        gate(context.get_hparam("port"), batch_idx + 1)

def loss_of(batch):
    x, y = batch
    return torch.nn.functional.cross_entropy(model(x), y)

def evaluate_batch(batch):
    return {"val_loss": loss_of(batch)}
"""

KERAS_SETUP = """
import numpy as np
import tensorflow as tf
import det_native as det
"""

KERAS_DATA = """
x = np.random.default_rng(3).normal(size=(40, 6)).astype("float32")
y = x[:, :3].argmax(1)
"""

KERAS_CALLBACK = """
class Visit(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        if context.get_hparam("starts"):
            gate(context.get_hparam("port"), "start")

    def on_train_batch_begin(self, batch, logs=None):
        number = int(self.model.optimizer.iterations) + 1
        if str(number) in context.get_hparam("stops").split():
            gate(context.get_hparam("port"), number)
        if str(number) in context.get_hparam("holds").split():
            until_told()
"""

KERAS_FIT = """
context = det.experimental.keras.init(configuration(hyperparameters=settings), wait=False)
layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dropout(0.3)]
model = context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.01), loss)
experiment = model.fit(x, y, validation_data=(x, y), shuffle=True, callbacks=[Visit()])
"""

KERAS_END = """
def end_of(number):
    trial = det.attach(number).trials[0]
    weights = [value.tobytes().hex() for value in trial.checkpoints[-1].load().get_weights()]
    return [weights, *(trial.metrics(kind) for kind in ("training", "validation"))]
"""

# What the kernels that all tests share have run.
TORCH_CELLS = (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, RANKED, TORCH_END)
KERAS_CELLS = (KERAS_SETUP, GATE_CELL, CONFIG, KERAS_DATA, KERAS_CALLBACK, KERAS_END)
