"""What a captured call of ``fit`` asks of its context."""

from __future__ import annotations

from typing import Any, Protocol

from det_native.schema.environment import TrialEnvironment
from det_native.trial import Role


class CallContext(Protocol):
    """What a call, and who runs it, ask of the context that took it (a ``TFKerasNativeContext``)."""

    env: TrialEnvironment
    role: Role
    experiment: Any
    stop_requested: bool
    metric_said: bool

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run, where more is known of it than when the context was made."""

    def get_stop_requested(self) -> bool:
        """Return whether the user's code asks for an early end."""

    def is_shared(self, dataset: Any) -> bool:
        """Return whether each process has its own part of a Dataset."""

    def release_model(self, model: Any) -> None:
        """Make a wrapped model plain Keras again."""
