"""What the ranks of a trial tell each other besides gradients: parts of metrics, decisions."""

from __future__ import annotations

from typing import Any, Protocol

from det_native.errors import UnsupportedFeatureError
from det_native.schema.environment import TrialEnvironment


class Exchange(Protocol):
    """Collective calls: every rank makes each of them, in the same order."""

    def gather(self, value: Any) -> list[Any]:
        """Return the (picklable) values of all ranks, by rank, on every rank."""

    def from_chief(self, value: Any) -> Any:
        """Return the first rank's value, on every rank."""


class OneProcess(Exchange):
    """A trial of one rank."""

    def gather(self, value: Any) -> list[Any]:
        """Return the value alone."""
        return [value]

    def from_chief(self, value: Any) -> Any:
        """Return the value."""
        return value


def exchange_of(environment: TrialEnvironment) -> Exchange:
    """Return what connects the ranks of a trial.

    Raises
    ------
    UnsupportedFeatureError
        For more than one rank.
    """
    if environment.ranks.size > 1:
        raise UnsupportedFeatureError(
            f"resources.slots_per_trial: {environment.ranks.size} comes with a later version."
        )
    return OneProcess()
