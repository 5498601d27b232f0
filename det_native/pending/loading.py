"""Placeholder until the real one is merged: loads the last checkpoint by the framework's own means."""

from __future__ import annotations

from typing import Any

from det_native.client.handles import Experiment


def load_state(experiment: Experiment, call: Any, weights: str = "last") -> Any:
    """Put the weights of an experiment into the objects of a call."""
    trained = experiment.best_trial.checkpoints[-1].load()
    if hasattr(call, "model"):
        call.model.set_weights(trained.get_weights())
    else:
        call.context.models[0].load_state_dict(trained.state_dict())
