"""Trials whose own code has said that their hyperparameters are invalid, by raising ``InvalidHP``."""

from __future__ import annotations

from det_native.errors import InvalidHP
from det_native.schema import rest
from det_native.schema.states import TrialState


def is_refused(trial: rest.Trial) -> bool:
    """Return whether a trial has ended since its hyperparameters are invalid."""
    error = trial.error
    return trial.state is TrialState.CANCELED and error is not None and error.type == InvalidHP.__name__


def refused_because(error: rest.UserErrorInfo) -> str:
    """Return what is to be known of such a trial beside its state."""
    return f"invalid hyperparameters: {' '.join(error.message.split())}"
