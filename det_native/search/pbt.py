"""Population-based training (arXiv 1711.09846): after each round, changed copies of the best replace the worst."""

from __future__ import annotations

from typing import Any

from det_native.search.method import WORST, Begin, End, Extend, Move, for_json, from_json


class PopulationBased:
    """Trains a population in rounds. Satisfies ``Method``.

    Parameters
    ----------
    truncate_fraction : float
        Which share of the population is replaced after a round, 0 to 0.5.
    """

    def __init__(self, *, population: int, rounds: int, units: int, truncate_fraction: float) -> None:
        self._population, self._rounds, self._units = population, rounds, units
        self._replaced = int(truncate_fraction * population)
        self._begun = 0
        self._rounds_done = 0
        self._trained: dict[int, int] = {}  # how long those that live train in total, to the end of this round
        self._values: list[tuple[float, int]] = []

    def start(self) -> list[Move]:
        """Return the first moves."""
        return [self._begin() for _ in range(self._population)]

    def reached(self, trial: int, value: float) -> list[Move]:
        """Take the value of a trial at the end of a round; return what is to be done now."""
        self._values.append((value, trial))
        if len(self._values) < len(self._trained):
            return []
        order = [living for _, living in sorted(self._values)]
        self._values = []
        self._rounds_done += 1
        if self._rounds_done == self._rounds:
            self._trained = {}
            return [End(living) for living in order]
        kept = len(order) - self._replaced
        moves: list[Move] = []
        for living in order[kept:]:
            del self._trained[living]
            moves.append(End(living))
        for living in order[:kept]:
            self._trained[living] += self._units
        moves += [self._begin(parent) for parent in order[: self._replaced]]
        moves += [Extend(living, self._trained[living]) for living in order[:kept]]
        return moves

    def refused(self, trial: int) -> list[Move]:
        """Take a trial with invalid hyperparameters as the worst: after the round a copy of a better one follows it."""
        return self.reached(trial, WORST)

    @property
    def total_units(self) -> int:
        """How much training the whole search is."""
        return self._population * self._rounds * self._units

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {
            "begun": self._begun,
            "rounds_done": self._rounds_done,
            "trained": list(self._trained.items()),
            "values": for_json(self._values),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._begun, self._rounds_done = snapshot["begun"], snapshot["rounds_done"]
        self._trained = dict(snapshot["trained"])
        self._values = from_json(snapshot["values"])

    def _begin(self, parent: int | None = None) -> Begin:
        self._trained[self._begun] = self._units
        self._begun += 1
        return Begin(self._units, parent)
