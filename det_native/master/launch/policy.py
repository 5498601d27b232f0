"""How many standbys of which kind to keep. Pure: uses, time and memory in, numbers out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Policy:
    """The limits that the numbers follow.

    Attributes
    ----------
    settle : float
        Seconds after a start in which no standby warms up, so that it does not compete with the new worker.
    idle : float
        Seconds without use after which a kind's standbys go; the kind used last stays four times as long.
    scarce, low : float
        Shares of available memory: under `scarce` no standby is added beyond one of the kind used last, under `low`
        all but that one go.
    warming : int
        Standbys that may warm up at the same time.
    """

    settle: float = 5.0
    idle: float = 900.0
    scarce: float = 0.25
    low: float = 0.12
    warming: int = 1


@dataclass(frozen=True)
class Use:
    """How a kind has been used.

    Attributes
    ----------
    last : float
        When it was last asked for, on a monotonic clock.
    peak : int
        The most workers of the kind that ran at once since its standbys were last idle.
    """

    last: float
    peak: int = 1


@dataclass(frozen=True)
class Bounds:
    """Standbys of a kind: add some below `least`, end some above `most`."""

    least: int
    most: int


def bounds(uses: Mapping[Key, Use], now: float, slots: int, memory: float, policy: Policy) -> dict[Key, Bounds]:
    """Return how many standbys to have of each kind; of a kind left out there should be none.

    The kind used last gets as many as ran at once (up to the slots) and one for checks; every other kind gets two, for
    the check and the first trial of a submit.

    Parameters
    ----------
    uses : mapping
        Kind to its use.
    now : float
        The time on the clock of ``Use.last``.
    slots : int
        Slots of the master.
    memory : float
        Available share of the memory, 0 to 1.
    """
    if not uses:
        return {}
    latest = max(uses, key=lambda key: uses[key].last)
    result: dict[Key, Bounds] = {}
    for key, use in uses.items():
        idle = now - use.last
        if key == latest and idle < 4 * policy.idle:
            full = min(slots, max(1, use.peak)) + 1
            result[key] = Bounds(1 if memory < policy.scarce else full, 1 if memory < policy.low else full)
        elif key != latest and idle < policy.idle and memory >= policy.low:
            result[key] = Bounds(0 if memory < policy.scarce else 2, 2)
    return result


def idle_ends(uses: Mapping[Key, Use], policy: Policy) -> dict[Key, float]:
    """Return when each kind has been without use for so long that its standbys go, if nothing is used until then."""
    if not uses:
        return {}
    latest = max(uses, key=lambda key: uses[key].last)
    return {key: use.last + (4 if key == latest else 1) * policy.idle for key, use in uses.items()}
