"""Which trial a call means that trains here: its configuration, hyperparameters and seed; which models it trains."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any, NamedTuple

from det_native.experimental.settings import Settings, complete_for_fit
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.sampling import sample_hyperparameters

# Identities are compared: what a user's class says of equality is no matter.
_trained: dict[int, weakref.ref[Any]] = {}


class Sample(NamedTuple):
    """What one trial is trained with.

    Attributes
    ----------
    hparams : dict
        One value for every hyperparameter.
    """

    hparams: dict[str, Any]
    seed: int


def config_of_call(settings: Settings, call: Any) -> ExperimentConfig:
    """Return the configuration of a call that trains here."""
    config = complete_for_fit(settings, call)
    # init() has drawn the sample that the model was built with: its seed is the experiment's.
    return config.with_seed(call.context.env.config["reproducibility"]["experiment_seed"])


def sample_of_call(config: ExperimentConfig, call: Any) -> Sample:
    """Return the sample of a call that trains the model as ``init()`` had it built."""
    environment: TrialEnvironment = call.context.env
    drawn = sample_hyperparameters(config.hyperparameters, environment.trial_seed)
    return Sample(drawn | environment.hparams, environment.trial_seed)


def note_trained(call: Any) -> None:
    """Take note that the models of a call are trained here: on a worker they begin where they did here."""
    for model in call.models:
        _trained[id(model)] = weakref.ref(model, partial(_forget, id(model)))


def was_trained(call: Any) -> bool:
    """Return whether a model of a call was trained here."""
    return any(id(model) in _trained for model in call.models)


def _forget(identity: int, reference: weakref.ref[Any]) -> None:
    _trained.pop(identity, None)
