"""What a trial with Keras 3 cannot have, refused before anything is built."""

from __future__ import annotations

from typing import Any

from det_native.errors import UnsupportedFeatureError
from det_native.frameworks import get_framework
from det_native.keras.generations import BACKEND, TITLE
from det_native.schema.environment import TrialEnvironment


def refuse(environment: TrialEnvironment) -> None:
    """Refuse what a configuration asks for and Keras 3 has not."""
    if (slots := max(environment.slots, environment.ranks.size)) > 1 and BACKEND != "tensorflow":
        reason = get_framework("keras").one_slot or f"{TITLE} trains on one slot; on several train it on TensorFlow"
        raise UnsupportedFeatureError(f"resources.slots_per_trial: {slots} is refused: {reason}.")
    optimizations = environment.config.get("optimizations") or {}
    if environment.managed and (frequency := int(optimizations.get("aggregation_frequency") or 1)) > 1:
        raise UnsupportedFeatureError(
            f"optimizations.aggregation_frequency: {frequency} is not there for {TITLE}: give the optimizer "
            f"gradient_accumulation_steps={frequency} instead, or use tf.keras 2."
        )


def check_step(model: Any, steps: int) -> None:
    """Refuse ``steps_per_execution`` by which an epoch does not come out even: Keras 3 would read into the next one."""
    several = int(model.steps_per_execution or 1)
    if several > 1 and steps % several:
        raise UnsupportedFeatureError(
            f"compile(steps_per_execution={several}) does not divide the {steps} batches of an epoch: with {TITLE} "
            "choose a number that does."
        )
