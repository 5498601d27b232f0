"""Code that switches eager execution off in the user's process: it is started over in one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from det_harness.trial.services import OwnProcessNeededError
from det_native.errors import UnsupportedFeatureError
from det_native.keras import precision
from det_native.keras.switches import intercepted
from det_native.schema.environment import TrialEnvironment


def refuse_in_graph_mode(environment: TrialEnvironment) -> None:
    """Refuse what a trial cannot have that has switched eager execution off."""
    optimizations = environment.config.get("optimizations") or {}
    asked = {
        f"resources.slots_per_trial: {environment.ranks.size}": environment.ranks.size > 1,
        f"optimizations.mixed_precision: {optimizations.get('mixed_precision')}": precision.policy_of(environment),
        f"optimizations.aggregation_frequency: {optimizations.get('aggregation_frequency')}": environment.managed
        and int(optimizations.get("aggregation_frequency") or 1) > 1,
    }
    for field, is_asked in asked.items():
        if is_asked:
            raise UnsupportedFeatureError(f"Graph mode has no {field}: leave eager execution switched on for it.")


@contextmanager
def needing_own_process(what: str) -> Iterator[None]:
    """Raise in the block, at the first switch, that `what` needs a process of its own.

    Raises
    ------
    OwnProcessNeededError
    """

    def refuse(name: str) -> None:
        raise OwnProcessNeededError(f"{what} calls tf.compat.v1.{name}(), which could not be undone in this process")

    with intercepted(refuse):
        yield
