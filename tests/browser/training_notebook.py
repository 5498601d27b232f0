"""Notebooks that train, and how they are written."""

from __future__ import annotations

from pathlib import Path

import nbformat

# The library that trains; PACE is what one batch takes, as a larger model's would.
DEFINITION = """
import time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

PACE = {pace}

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05))

    def _loader(self):
        x = torch.arange(256.0).reshape(64, 4) / 256
        return DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)

    def build_training_data_loader(self):
        return self._loader()

    def build_validation_data_loader(self):
        return self._loader()

    def train_batch(self, batch, epoch_idx, batch_idx):
        time.sleep(PACE)
        {extra}
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {{"loss": loss}}

    def evaluate_batch(self, batch):
        return {{"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}}
"""

CONFIG = """
config = {{
    "name": "{name}",
    "hyperparameters": {{"global_batch_size": 8}},
    "searcher": {{"name": "single", "metric": "error", "max_length": {{"batches": {batches}}}}},
    "min_validation_period": {{"batches": 20}},
    "scheduling_unit": 10,
    "max_restarts": 0,
}}
"""

CREATE = "experiment = det.experimental.create(Line, config)\nexperiment"


def training_cells(
    name: str = "line", *, batches: int = 100_000, pace: float = 0.02, extra: str = "pass"
) -> tuple[str, str, str]:
    """Return cells that define a trial, configure it, and submit and show it."""
    return (DEFINITION.format(pace=pace, extra=extra), CONFIG.format(name=name, batches=batches), CREATE)


def write_notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path
