"""One digits model for many tests: TensorFlow traces its graphs once, and every test gets it as if just made."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from keras_support import SEED, make_model, seeded

from det_native.keras.context import TFKerasNativeContext
from det_native.schema.environment import TrialEnvironment


@cache
def _made() -> tuple[Any, list[Any]]:
    model = make_model()
    model.optimizer.build(model.trainable_variables)
    return model, [np.array(value) for value in _values(model)]


def fresh_model() -> Any:
    """Return the model with its first weights and a new optimizer's state, wrapped by nobody."""
    model, values = _made()
    TFKerasNativeContext(TrialEnvironment({}, {}, trial_seed=SEED)).release_model(model)
    for variable, value in zip(_variables(model), values, strict=True):
        variable.assign(value)
    model.optimizer.learning_rate.assign(0.001)
    model.stop_training = False
    seeded()
    return model


def trained() -> list[Any]:
    """Return the model's present weights and optimizer state."""
    return _values(_made()[0])


def _variables(model: Any) -> list[Any]:
    return [*model.weights, *model.optimizer.variables]


def _values(model: Any) -> list[Any]:
    return [variable.numpy() for variable in _variables(model)]
