"""A model that is trained again goes on from where it is: what a local run of the same cells gives, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import Cluster, Kernel, running_kernel

pytestmark = [pytest.mark.slow, pytest.mark.long]

KERAS = """
import numpy as np
import tensorflow as tf
import det_native as det

keras = tf.keras
x = np.random.default_rng(3).normal(size=(64, 6)).astype("float32")
y = (x.sum(1) > 0).astype("float32")

def dense(size, **settings):
    return keras.layers.Dense(size, activation="relu", **settings)
"""
KERAS_MODEL = """
context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 5}}, local=LOCAL)
keras.utils.set_random_seed(1)
base = keras.Sequential([keras.layers.Input((6,)), dense(8), keras.layers.BatchNormalization(), dense(8)])
base.trainable = False
inputs = keras.layers.Input((6,))
model = context.wrap_model(keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(base(inputs))))
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
"""
KERAS_LOOP = """
losses, seen = [], []
for turn in range(3):
    history = model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)
    losses += history.history["loss"]
    seen.append(model.predict(x[:4], verbose=0).tobytes().hex())
"""
KERAS_UNFREEZE = """
base.trainable = True
model.compile(keras.optimizers.Adam(0.001), "binary_crossentropy")
later = model.fit(x, y, batch_size=16, epochs=4, initial_epoch=3, shuffle=False, verbose=0)
"""
KERAS_KEPT = "kept = model.get_weights()"
KERAS_ON = "last = model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)"
KERAS_SET_BACK = """
model.set_weights(kept)
again = model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)
"""
KERAS_STATE = """(
    [losses, seen, later.history, later.epoch, last.history, again.history, int(model.optimizer.iterations)]
    + [weight.tobytes().hex() for weight in model.get_weights()]
)"""

KERAS_BUILT_BY_FIT = """
context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 5}}, local=LOCAL)
keras.utils.set_random_seed(1)
histories = []
for turn in range(2):
    model = context.wrap_model(keras.Sequential([dense(4), keras.layers.Dense(1, activation="sigmoid")]))
    model.compile("adam", "binary_crossentropy")
    histories.append(model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0))
"""
KERAS_OF_ALL = """(
    [one.history for one in histories] + [keras.initializers.GlorotUniform()((2, 2)).numpy().tolist()]
    + [weight.tobytes().hex() for one in histories for weight in one.model.get_weights()]
)"""

TORCH = """
import torch
import det_native as det

x = torch.randn(64, 6, generator=torch.Generator().manual_seed(3))
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=16)
"""
TORCH_MODEL = """
context = det.experimental.pytorch.init({"reproducibility": {"experiment_seed": 5}}, local=LOCAL)
torch.manual_seed(1)
model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.01))

def train_batch(batch, epoch_idx=0, batch_idx=0):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

def error():
    with torch.no_grad():
        return float(torch.nn.functional.mse_loss(model(x), data.tensors[1]))
"""
TORCH_LOOP = """
histories, errors = [], []
for turn in range(2):
    experiment = context.fit(loader, train_batch=train_batch, epochs=1)
    histories.append(experiment.history["loss"][0])
    errors.append(error())
"""
TORCH_TRAIN = """
for batch in context.train(loader, epochs=1):
    context.report(train_batch(batch))
"""
TORCH_SLOWER = """
optimizer.param_groups[0]["lr"] = 0.001
for batch in context.train(loader, epochs=1):
    context.report(train_batch(batch))
"""
TORCH_STATE = """(
    [histories, errors, error(), context.experiment.history["loss"]]
    + [float(one["step"]) for one in optimizer.state_dict()["state"].values()]
    + [weight.numpy().tobytes().hex() for weight in model.state_dict().values()]
)"""


@pytest.fixture
def keras_notebook(keras_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A notebook of its own: it trains here, too."""
    monkeypatch.setenv("DET_HOME", str(keras_cluster.home.path))
    with keras_cluster.clearing(), running_kernel(keras_cluster, "again", KERAS) as kernel:
        yield kernel


@pytest.fixture
def torch_notebook(torch_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    """A notebook of its own: it trains here, too."""
    monkeypatch.setenv("DET_HOME", str(torch_cluster.home.path))
    with torch_cluster.clearing(), running_kernel(torch_cluster, "again", TORCH) as kernel:
        yield kernel


def test_a_model_of_keras_goes_on_by_fits_in_a_loop_and_in_later_cells(
    keras_notebook: Kernel, keras_cluster: Cluster
) -> None:
    kernel = keras_notebook
    kernel.run(KERAS_MODEL.replace("LOCAL", "False"))
    kernel.run(KERAS_LOOP)
    first = kernel.value("history.id") - 2
    for cell in (KERAS_UNFREEZE, KERAS_KEPT, KERAS_ON, "unused = model(x[:1])", KERAS_SET_BACK):
        kernel.run(cell)
    trained = kernel.value(KERAS_STATE)
    losses = kernel.value("losses")
    assert losses == sorted(losses, reverse=True)
    assert kernel.value("later.epoch") == [3]

    number = kernel.value("again.id")
    kernel.run(f"loaded = det.experiment({number}).checkpoints[-1].load()")
    assert kernel.value("[weight.tobytes().hex() for weight in loaded.get_weights()]") == trained[7:]
    bundle = keras_cluster.attach(number).source.bundle(number)
    assert [one.experiment_id for one in bundle.program.earlier] == list(range(first, number))

    for cell in (KERAS_MODEL.replace("LOCAL", "True"), KERAS_LOOP, KERAS_UNFREEZE, KERAS_KEPT, KERAS_ON):
        kernel.run(cell)
    kernel.run(KERAS_SET_BACK)
    assert kernel.value(KERAS_STATE) == trained


def test_models_that_fit_builds_side_by_side_have_the_seeds_of_a_local_run(keras_notebook: Kernel) -> None:
    """Each has drawn when the next one is made, here and in the program that a worker runs again."""
    kernel = keras_notebook
    assert "Waiting" not in kernel.run(KERAS_BUILT_BY_FIT.replace("LOCAL", "False")).text
    there = kernel.value(KERAS_OF_ALL)
    kernel.run(KERAS_BUILT_BY_FIT.replace("LOCAL", "True"))
    here = kernel.value(KERAS_OF_ALL)
    assert there == here
    assert here[0] != here[1]


def test_modules_of_pytorch_go_on_by_fits_and_loops(torch_notebook: Kernel) -> None:
    kernel = torch_notebook
    kernel.run(TORCH_MODEL.replace("LOCAL", "False"))
    for cell in (TORCH_LOOP, TORCH_TRAIN, TORCH_SLOWER):
        kernel.run(cell)
    kernel.run("error()")
    trained = kernel.value(TORCH_STATE)
    errors = kernel.value("[*errors, error()]")
    assert errors == sorted(errors, reverse=True)
    kernel.run("loaded = context.experiment.checkpoints[-1].load()")
    weights = kernel.value("[weight.numpy().tobytes().hex() for weight in loaded.state_dict().values()]")
    assert weights == trained[-len(weights) :]

    for cell in (TORCH_MODEL.replace("LOCAL", "True"), TORCH_LOOP, TORCH_TRAIN, TORCH_SLOWER):
        kernel.run(cell)
    assert kernel.value(TORCH_STATE) == trained
