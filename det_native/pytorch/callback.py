"""Callbacks of a PyTorchTrial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from det_native.errors import ArgumentError


class PyTorchCallback:
    """Base of callbacks; override the hooks you need and return the callbacks from ``PyTorchTrial.build_callbacks()``.

    A callback that changes over time must override ``state_dict`` and ``load_state_dict``; its state goes into every
    checkpoint and may be anything picklable. On several slots every slot has its own copy, and runs all hooks except
    those that say otherwise.
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """Run at each start of the trial's process, before a checkpoint is restored.

        Parameters
        ----------
        first_batch_idx : int
            Index of the first batch that will be trained: batches done so far.
        checkpoint_uuid : str or None
            The checkpoint that training continues from.
        """

    def on_trial_shutdown(self) -> None:
        """Run when the process stops training: at the end, before a pause, and after an error."""

    def on_training_start(self) -> None:
        """Run after a checkpoint is restored, before the first batch of this process."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Run before the first batch of an epoch; not again where an epoch is continued."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """Run after the last batch of an epoch, and after the schedulers that step every epoch."""

    def on_before_optimizer_step(self, parameters: Iterator[torch.nn.Parameter]) -> None:
        """Run before every step of an optimizer; deprecated: give ``step_optimizer`` a ``clip_grads`` function.

        Parameters
        ----------
        parameters : iterator
            Parameters of the optimizer, whose gradients are complete.
        """

    def on_validation_start(self) -> None:
        """Run before every validation."""

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """Run after every validation, on the first rank only.

        Parameters
        ----------
        metrics : dict
            Name of each validation metric to its value.
        """

    def on_validation_step_start(self) -> None:
        """Run before every validation, ahead of ``on_validation_start``."""

    def on_validation_step_end(self, metrics: dict[str, Any]) -> None:
        """Run after every validation, ahead of ``on_validation_end``, on the first rank only."""

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        """Run before a checkpoint is restored.

        Parameters
        ----------
        checkpoint : dict
            All that is restored (``models_state_dict``, ``optimizers_state_dict``, ``callbacks`` ...), and what
            ``on_checkpoint_save_start`` has put in; changes have an effect.
        """

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Run before a checkpoint is written.

        Parameters
        ----------
        checkpoint : dict
            All that will be written; what you put in comes back in ``on_checkpoint_load_start``.
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Run after every checkpoint is written, on the first rank only; files put into the folder belong to it.

        Parameters
        ----------
        checkpoint_dir : str
            Folder of the checkpoint.
        """

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Run after every checkpoint is written, ahead of ``on_checkpoint_end``, on every rank."""

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """Run once a checkpoint is complete in its storage, between two batches."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""


class _Clips(PyTorchCallback):
    """Clips each optimizer's gradients before its steps.

    Kept for trials that were written for Determined, which deprecated it: give ``step_optimizer`` a ``clip_grads``.

    Parameters
    ----------
    clip_value : float
        The largest L2 norm of the gradients of an optimizer's parameters, taken together, or magnitude of a value.
    """

    _clip: Callable[..., Any]

    def __init__(self, clip_value: float) -> None:
        if not clip_value > 0:
            raise ArgumentError(f"{type(self).__name__}(clip_value={clip_value!r}): give a number greater than 0.")
        self._clip_value = clip_value

    def on_before_optimizer_step(self, parameters: Iterator[torch.nn.Parameter]) -> None:
        """Clip."""
        self._clip(parameters, self._clip_value)


class ClipGradsL2Norm(_Clips):
    """Clips the norm of each optimizer's gradients."""

    _clip = staticmethod(torch.nn.utils.clip_grad_norm_)


class ClipGradsL2Value(_Clips):
    """Clips every value of each optimizer's gradients."""

    _clip = staticmethod(torch.nn.utils.clip_grad_value_)
