"""A trial that says whether its model was compiled."""

from __future__ import annotations

from typing import Any

import torch
from rank_trials import PlainTrial


class Compiled(PlainTrial):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        metrics = super().train_batch(batch, epoch_idx, batch_idx)
        self.graphs = int(torch._dynamo.utils.counters["stats"]["unique_graphs"])
        return metrics
