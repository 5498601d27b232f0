"""The loss of an epoch of a model of graphs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.batch_values import MeanState, states_of
from det_harness.frameworks.keras.graph.data import Batch
from det_native.keras.generations.keras2 import metrics_of


class RunningLoss:
    """The mean of the loss over the rows of an epoch so far: such a model gives that of each batch."""

    def __init__(self) -> None:
        self.total = self.rows = 0.0

    def reset(self, total: float = 0.0, rows: float = 0.0) -> None:
        """Begin an epoch, or go on in one."""
        self.total, self.rows = total, rows

    def logs(self, model: Any, values: Any, batch: Batch) -> dict[str, Any]:
        """Take in what the model returned for a batch; return it by name, with the mean as the loss."""
        named = dict(zip(model.metrics_names, tf.nest.flatten(values), strict=True))
        rows = float(len(tf.nest.flatten(batch[0])[0]))
        self.total += float(named["loss"]) * rows
        self.rows += rows
        return named | {"loss": self.total / self.rows}

    def states(self, model: Any) -> dict[str, MeanState]:
        """Return the states of the means of a model: of its loss and its metrics."""
        mean = self.total / self.rows if self.rows else 0.0
        return {"loss": MeanState(mean, self.rows), **states_of(metrics_of(model))}
