"""Learning rate schedulers with the rule for when they step."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch

from det_native.errors import ArgumentError


class LRScheduler:
    """A torch learning rate scheduler and when it steps.

    Parameters
    ----------
    scheduler : torch.optim.lr_scheduler.LRScheduler
        Any torch scheduler (``ReduceLROnPlateau`` steps with a metric, so only by hand).
    step_mode : LRScheduler.StepMode
    """

    class StepMode(Enum):
        """When ``scheduler.step()`` is called; without arguments, by the training loop."""

        STEP_EVERY_EPOCH = 1
        """After every epoch of training."""

        STEP_EVERY_BATCH = 2
        """After every batch of training, whether or not gradients are aggregated over several batches."""

        MANUAL_STEP = 3
        """Never by the training loop: the user's code steps it."""

    def __init__(self, scheduler: Any, step_mode: StepMode | None) -> None:
        if not isinstance(step_mode, LRScheduler.StepMode):
            raise ArgumentError(
                f"step_mode must be one of LRScheduler.StepMode.STEP_EVERY_EPOCH, .STEP_EVERY_BATCH and .MANUAL_STEP, "
                f"not {step_mode!r}."
            )
        if not callable(getattr(scheduler, "step", None)) or not hasattr(scheduler, "state_dict"):
            raise ArgumentError(
                f"{type(scheduler).__name__} is not a learning rate scheduler: it lacks step() or state_dict()."
            )
        needs_metric = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if needs_metric and step_mode is not LRScheduler.StepMode.MANUAL_STEP:
            raise ArgumentError(
                "ReduceLROnPlateau steps with a metric: use LRScheduler.StepMode.MANUAL_STEP and call its step(metric) "
                "in a callback's on_validation_end()."
            )
        self._scheduler = scheduler
        self._step_mode: LRScheduler.StepMode = step_mode

    @property
    def scheduler(self) -> Any:
        """The torch scheduler."""
        return self._scheduler

    @property
    def step_mode(self) -> StepMode:
        """When it steps."""
        return self._step_mode

    def step(self, *arguments: Any, **keywords: Any) -> None:
        """Step the torch scheduler."""
        self._scheduler.step(*arguments, **keywords)

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each parameter group."""
        return list(self._scheduler.get_last_lr())

    def state_dict(self) -> dict[str, Any]:
        """Return the torch scheduler's state."""
        return dict(self._scheduler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the torch scheduler's state."""
        self._scheduler.load_state_dict(state_dict)
