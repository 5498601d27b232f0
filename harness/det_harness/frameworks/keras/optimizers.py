"""The optimizers of a model, and what is known of tf.keras 2.15's beyond their documents: where their gradients can be
averaged.

Each name here is in a test.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from det_native.keras.generations import NUMBER


def is_optimizer(value: Any) -> bool:
    """Return whether it is an optimizer of Keras, new or legacy."""
    kinds = (tf.keras.optimizers.Optimizer,)
    return isinstance(value, kinds if NUMBER > 2 else (*kinds, tf.keras.optimizers.legacy.Optimizer))


def innermost(optimizer: Any) -> Any:
    """Return the optimizer that a ``LossScaleOptimizer`` is around; any other as it is."""
    while isinstance(inner := getattr(optimizer, "inner_optimizer", None), object) and is_optimizer(inner):
        optimizer = inner
    return optimizer


def aggregation_name(optimizer: Any) -> str:
    """Return the name of the method by which an optimizer averages gradients before it clips and uses them."""
    legacy = isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer)
    return "_aggregate_gradients" if legacy else "aggregate_gradients"


def optimizers_of(model: Any) -> list[Any]:
    """Return the optimizers of a model: the one that it was compiled with, and those in its attributes."""
    found: list[Any] = []
    # Attributes are in wrappers of Keras's where they are lists and dictionaries.
    for value in [getattr(model, "optimizer", None), *vars(model).values()]:
        for each in _flat(value):
            if is_optimizer(each) and all(each is not one for one in found):
                found.append(each)
    inside = [innermost(each) for each in found if innermost(each) is not each]
    return [each for each in found if all(each is not one for one in inside)]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for part in value.values() for each in _flat(part)]
    if isinstance(value, list | tuple):
        return [each for part in value for each in _flat(part)]
    return [value]
