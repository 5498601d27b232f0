"""What users subclass."""

from __future__ import annotations

import random

from det_native.trial import Trial, TrialContext


class ToyTrial(Trial):
    """A counter and the last few steps that it made; a step is as long as a random number says."""

    def __init__(self, context: TrialContext) -> None:
        self.context = context
        self.count = 0
        self.steps: list[int] = []

    def train_batch(self, batch_idx: int) -> dict[str, float]:
        """Count on; return the metrics of the batch."""
        step = random.randrange(1, 10)
        self.count += step
        self.steps = [*self.steps[-3:], step]
        return {"loss": 1.0 / self.count}

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of a validation."""
        return {"val_loss": 1.0 / (1 + self.count)}
