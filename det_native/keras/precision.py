"""``optimizations.mixed_precision`` as a policy of Keras: layers compute in half precision, variables stay in float32.

Under ``mixed_float16`` Keras itself puts a ``LossScaleOptimizer`` around the optimizer in ``compile()``; its loss scale
is part of the optimizer's state, and so of checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from det_native.schema.environment import TrialEnvironment

# Apex's levels: O1 and O2 mix precisions, O3 has half precision only.
_POLICIES = {"O1": "mixed_float16", "O2": "mixed_float16", "O3": "float16"}

_before: list[Any] = []


def policy_of(environment: TrialEnvironment) -> str | None:
    """Return the name of the policy that a configuration asks for, None for Keras's own."""
    asked = (environment.config.get("optimizations") or {}).get("mixed_precision", "O0")
    return None if asked == "O0" or not environment.managed else _POLICIES.get(asked, asked)


@contextmanager
def applied(environment: TrialEnvironment) -> Iterator[None]:
    """Make it the policy of the layers that are made in the block; without one, the program's own stays."""
    name = policy_of(environment)
    if name is None:
        yield
        return
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(name)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


def hold(environment: TrialEnvironment) -> None:
    """Make it the policy of the layers that are made from now on, until this is called for another configuration."""
    if _before:
        tf.keras.mixed_precision.set_global_policy(_before.pop())
    name = policy_of(environment)
    if name is not None:
        _before.append(tf.keras.mixed_precision.global_policy())
        tf.keras.mixed_precision.set_global_policy(name)
