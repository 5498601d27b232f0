"""Private attributes of tf.keras 2.15, which has no public ones for what is asked here."""

from __future__ import annotations

from typing import Any


def takes_several_batches(model: Any) -> bool:
    """Return whether one call of the model's training function takes several batches (``steps_per_execution``)."""
    steps = model._steps_per_execution
    return bool(model._autotune_steps_per_execution) or (steps is not None and int(steps) > 1)
