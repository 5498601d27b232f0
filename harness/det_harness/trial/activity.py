"""How much this process has done: a number that moves as long as its training, validation or saving does.

The master takes a worker for one that hangs if it neither moves nor anything is reported.
"""

from __future__ import annotations

_steps = 0


def step() -> None:
    """Count a batch of training or validation, or some of them."""
    global _steps
    _steps += 1


def steps() -> int:
    """Return the number."""
    return _steps
