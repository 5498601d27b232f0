"""How searches in several stages decide, apart from hyperparameters, seeds, and trials that end before their time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

#: The value of a trial that has failed, or has no number to show. Lower values are better.
WORST = float("inf")


@dataclass(frozen=True)
class Begin:
    """Begin a new trial; it has the next number. With a `parent` it is a changed copy of that trial."""

    units: int
    parent: int | None = None


@dataclass(frozen=True)
class Extend:
    """Train a trial on, until `units` are done in total."""

    trial: int
    units: int


@dataclass(frozen=True)
class End:
    """A trial is not trained on."""

    trial: int


Move = Begin | Extend | End


class Method(Protocol):
    """Decides on trials that are numbered from 0 in the order they begin.

    It is told of a value for each `Begin` and each `Extend`, once: of trials that failed too, which have the worst
    value. So all that it has begun comes to an `End` at last.
    """

    def start(self) -> list[Move]:
        """Return the first moves."""

    def reached(self, trial: int, value: float) -> list[Move]:
        """Take the value of a trial that has trained as long as it was asked to; return what is to be done now."""

    def refused(self, trial: int) -> list[Move]:
        """Take that a trial has no value, since its hyperparameters are invalid; return what is to be done now."""

    @property
    def total_units(self) -> int:
        """How much training the whole search is expected to be, over all its trials."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""


def value_of(metric: float | None, *, smaller_is_better: bool) -> float:
    """Return the value of a metric: lower is better; no number is the worst of all, and so is an infinite one."""
    if metric is None or not math.isfinite(metric):
        return WORST
    return metric if smaller_is_better else -metric


def for_json(values: Sequence[tuple[float, int]]) -> list[tuple[float | None, int]]:
    """Return values with their trials as JSON can hold them: it has no infinity."""
    return [(None if value == WORST else value, trial) for value, trial in values]


def from_json(values: Sequence[tuple[float | str | None, int]]) -> list[tuple[float, int]]:
    """Return what :func:`for_json` was given; the best value of all may have become a text on its way."""
    return [(WORST if value is None else float(value), trial) for value, trial in values]
