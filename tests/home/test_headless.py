"""A notebook that nobody watches: nbclient executes it whole, and it ends as that of a local run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from faults import PATIENCE, Cluster
from nbclient import NotebookClient

pytestmark = [pytest.mark.slow, pytest.mark.long]

CELLS = [
    """
import keras
import numpy as np
import det_native as det

x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)
keras.utils.set_random_seed(1)
""",
    """
context = det.experimental.keras.init({"reproducibility": {"experiment_seed": 1}}, local=LOCAL)
model = context.wrap_model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)]))
model.compile(keras.optimizers.Adam(0.1), "mse")
""",
    "history = model.fit(x, y, epochs=2, batch_size=16, verbose=0)",
    "print(model.predict(x[:3], verbose=0))",
    "model.evaluate(x, y, verbose=0), int(model.optimizer.iterations.numpy())",
    "history.history",
    "model.fit(x, y, epochs=1, batch_size=16, verbose=0)\nprint(model.get_weights())",
]
TRAINING = 2


def executed(cluster: Cluster, folder: Path, *, local: bool) -> list[str]:
    """Execute the notebook; return the text below each cell, without what the cluster says of itself."""
    folder.mkdir()
    cells = [nbformat.v4.new_code_cell(cell.strip().replace("LOCAL", str(local))) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    metadata = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=2 * PATIENCE, kernel_name="python3", resources=metadata)
    client.execute(env=cluster.environment)
    return ["".join(map(_text, cell.outputs)) for cell in notebook.cells]


def _text(output: Any) -> str:
    if output.output_type == "execute_result":
        return str(output.data["text/plain"])
    lines = output.text.splitlines(keepends=True) if output.output_type == "stream" and output.name == "stdout" else []
    return "".join(line for line in lines if not line.startswith("Experiment "))


def test_a_headless_run_ends_with_the_notebook_of_a_local_run(cluster: Cluster, tmp_path: Path) -> None:
    here = executed(cluster, tmp_path / "here", local=True)
    there = executed(cluster, tmp_path / "there", local=False)
    assert there[TRAINING + 1 :] == here[TRAINING + 1 :]
    assert all(here[TRAINING + 1 :])
