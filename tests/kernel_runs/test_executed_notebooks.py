"""Trainings in notebooks whose master starts meanwhile: what stands under which cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from recording import PATIENCE, end_master

from det_native.schema.home import Home

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

CELLS = (
    """
import time
import torch
import det_native as det

x = torch.linspace(-1, 1, 24).reshape(-1, 1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)
context = det.experimental.pytorch.init(local=True)
model = context.wrap_model(torch.nn.Linear(1, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
""",
    """
for inputs, targets in context.train(loader):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
""",
    """
while "not recorded" in repr(det.last_experiment()):
    time.sleep(0.02)
""",
)


@pytest.mark.parametrize("watched", [False, True])
def test_what_is_said_of_a_training_stands_under_its_cell(
    watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    temporary = home.path / "temporary"
    temporary.mkdir(parents=True)
    for name, value in {"DET_HOME": str(home.path), "TMPDIR": str(temporary), "DET_SLOTS": "cpu:1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DET_RECORD")
    if watched:
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "watched.ipynb"))
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    try:
        NotebookClient(notebook, timeout=int(PATIENCE), kernel_name="python3").execute()
    finally:
        end_master(home)
    assert not notebook.cells[2].outputs
    said = "".join(map(_text, notebook.cells[1].outputs))
    assert "batch 6 of 6: loss" in said
    if not watched:  # nothing of it that comes after its cell would be kept
        assert "Started a master" in said
        assert "Experiment 1" in said
        assert any("image/png" in output.get("data", {}) for output in notebook.cells[1].outputs)


def _text(output: Any) -> str:
    return str(output.text if output.output_type == "stream" else output.data["text/plain"])
