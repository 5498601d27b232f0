"""What the models of this process were trained to on the cluster: a call that is given them goes on from there."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from det_native.capture import submitted
from det_native.client.handles import Experiment
from det_native.inspection.registry import adapter_of
from det_native.past_history import encode
from det_native.proof.content import content_of
from det_native.schema import rest


@dataclass(frozen=True)
class _State:
    experiment_id: int
    batch: int
    content: str


_states: weakref.WeakKeyDictionary[Any, _State] = weakref.WeakKeyDictionary()


def note_trained(experiment: Experiment, call: Any, checkpoint: rest.Checkpoint) -> None:
    """Note that a call has its weights: of which experiment, and what came of it."""
    rows = experiment.source.epochs(checkpoint.trial_id)
    history = encode(rows, {} if rows else experiment.best_trial.history)
    past = getattr(call, "past", None)
    went_on = past is not None and past.went_on
    trained = submitted.Trained(int(experiment.id), checkpoint.uuid, checkpoint.batch, history, went_on)
    submitted.note_loaded(experiment, trained)
    state = _State(int(experiment.id), checkpoint.batch, content_of_weights(call))
    for model in call.models:
        _states[model] = state


def continued(call: Any) -> str:
    """Return from where a call goes on that is to be submitted; empty where its weights are no training's."""
    models = getattr(call, "models", ())
    known = [_states[model] for model in models if model in _states]
    if not known or known[-1].content != content_of_weights(call):
        return ""
    return f"continues from experiment {known[-1].experiment_id}, batch {known[-1].batch}"


def content_of_weights(call: Any) -> str:
    """Return a fingerprint of the weights of a call's models; empty if they cannot be read."""
    try:
        weights = [adapter.weights(model) for model in call.models if (adapter := adapter_of(type(model)))]
        return content_of(weights).exact
    except Exception:  # noqa: BLE001 (models of users may raise anything when they are asked)
        return ""
