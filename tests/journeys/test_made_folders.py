"""Notebooks that make folders and files and read them: the same cells do so on the cluster, which has none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from journey_kernel import Notebook
from saved_notebook import value

pytestmark = [pytest.mark.slow, pytest.mark.long]

TRAINING = """
context = det.experimental.pytorch.init({{"reproducibility": {{"experiment_seed": 1}}}}{where})
model = context.wrap_model(torch.nn.Linear(2, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
for x, y in context.train(DataLoader(TensorDataset(inputs, targets), batch_size=8), epochs=2):
    loss = torch.nn.functional.mse_loss(model(x), y)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
context.experiment.wait()
losses = context.experiment.history["loss"]
"""


@pytest.fixture
def opened(tmp_path: Path, environment: dict[str, str]) -> Iterator[Notebook]:
    """A fresh kernel."""
    notebook = Notebook(tmp_path, environment)
    yield notebook
    notebook.close()


def submitted(notebook: Notebook) -> object:
    """Train on the cluster; return the losses."""
    notebook.run(TRAINING.format(where=""))
    return value(notebook, "losses")


def test_folders_are_made_again_filled_again_and_submitted_again(opened: Notebook) -> None:
    opened.run(
        "import os, shutil\nimport numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "import det_native as det"
    )
    making = """
os.makedirs(folder)
np.save(f"{folder}/x.npy", np.arange(64.0, dtype="float32").reshape(32, 2) / 64)
inputs = torch.from_numpy(np.load("small/x.npy"))
targets = inputs.sum(1, keepdim=True)
"""
    opened.run('folder = "small"')
    opened.run(making, cell="making")
    first = submitted(opened)
    opened.run(TRAINING.format(where=", local=True"))
    assert value(opened, "losses") == first
    opened.run(f"shutil.rmtree(folder, ignore_errors=True)\n{making}", cell="making")
    assert submitted(opened) == first
    opened.run(
        making.replace("os.makedirs(folder)", "if not os.path.exists(folder):\n    os.makedirs(folder)"), cell="making"
    )
    assert submitted(opened) == first
