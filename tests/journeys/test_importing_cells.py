"""Notebooks whose first cell imports libraries and draws random numbers: the cluster trains with the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from journey_kernel import Notebook
from saved_notebook import value

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED = '{"reproducibility": {"experiment_seed": 1}}'


@pytest.fixture
def opened(tmp_path: Path, environment: dict[str, str]) -> Iterator[Notebook]:
    """A kernel that has imported nothing."""
    notebook = Notebook(tmp_path, environment)
    yield notebook
    notebook.close()


def test_keras_and_numpy(opened: Notebook) -> None:
    opened.run("import det_native as det")
    opened.run(
        """
import random
import numpy as np
import keras
x = np.random.rand(64, 4)
x = x[np.random.permutation(len(x))]
y = x.sum(1) + random.random()
model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
model.build((None, 4))
drawn = model.get_weights()
"""
    )
    for where in ("", ", local=True"):
        opened.run(
            f"""
context = det.experimental.keras.init({SEED}{where})
model.set_weights(drawn)
wrapped = context.wrap_model(model)
wrapped.compile("sgd", "mse")
wrapped.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0)
context.experiment.wait()
losses = globals().get("losses", []) + [context.experiment.history["loss"]]
"""
        )
    assert value(opened, "len(losses[0]) == 2 and losses[0] == losses[1]") is True


def test_torch_in_one_cell(opened: Notebook) -> None:
    opened.run(
        f"""
import det_native as det
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)[torch.randperm(64)]
data, rest = random_split(TensorDataset(x, y), [48, 16])
net = torch.nn.Linear(4, 1)
weights = [each.clone() for each in net.parameters()]
context = det.experimental.pytorch.init({SEED})
model = context.wrap_model(net)
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
for batch in context.train(DataLoader(data, batch_size=8), epochs=2):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""
    )
    opened.run("context.experiment.wait()\nlosses = context.experiment.history['loss']")
    opened.run(
        """
again = torch.nn.Linear(4, 1)
with torch.no_grad():
    for one, other in zip(again.parameters(), weights):
        one.copy_(other)
descent = torch.optim.SGD(again.parameters(), lr=0.1)
expected = []
for epoch in range(2):
    for batch in DataLoader(data, batch_size=8):
        loss = torch.nn.functional.mse_loss(again(batch[0]), batch[1])
        descent.zero_grad()
        loss.backward()
        descent.step()
        expected.append(loss.item())
"""
    )
    assert value(opened, "losses == [sum(expected[:6]) / 6, sum(expected[6:]) / 6]") is True
