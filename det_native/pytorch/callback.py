"""Callbacks of a PyTorchTrial."""

from __future__ import annotations

from typing import Any


class PyTorchCallback:
    """Base of callbacks; override the hooks you need and return the callbacks from ``PyTorchTrial.build_callbacks()``.

    A callback that changes over time must override ``state_dict`` and ``load_state_dict``; its state goes into every
    checkpoint and may be anything picklable.
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

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Run after every checkpoint is written, on the first rank only; files put into the folder belong to it.

        Parameters
        ----------
        checkpoint_dir : str
            Folder of the checkpoint.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
