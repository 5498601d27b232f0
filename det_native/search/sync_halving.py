"""Synchronous successive halving: how many trials each rung has is fixed before the first one begins."""

from __future__ import annotations

from bisect import insort
from typing import Any

from det_native.search.brackets import cost
from det_native.search.method import WORST, Begin, End, Extend, Move, for_json, from_json


class SyncHalving:
    """Promotes a trial when it is certain to be among those that go on. Satisfies ``Method``.

    Parameters
    ----------
    units : list of int
        Training in total at the end of each rung.
    trials : list of int
        How many trials each rung has; never more than the one before.
    """

    def __init__(self, units: list[int], trials: list[int]) -> None:
        self._units, self._trials = units, trials
        self._values: list[list[tuple[float, int]]] = [[] for _ in units]
        self._rung_of = [0] * trials[0]
        self._decided: set[tuple[int, int]] = set()

    def start(self) -> list[Move]:
        """Return the first moves."""
        return [Begin(self._units[0]) for _ in range(self._trials[0])]

    def reached(self, trial: int, value: float) -> list[Move]:
        """Take the value of a trial that has trained as long as it was asked to; return what is to be done now."""
        number = self._rung_of[trial]
        values = self._values[number]
        insort(values, (value, trial))
        if number == len(self._units) - 1:
            return [End(trial)]
        promoted = self._trials[number + 1]
        missing = self._trials[number] - len(values)
        moves: list[Move] = []
        for rank, (_, other) in enumerate(values):
            if (number, other) in self._decided:
                continue
            if rank + missing < promoted:
                self._rung_of[other] = number + 1
                moves.append(Extend(other, self._units[number + 1]))
            elif rank >= promoted:
                moves.append(End(other))
            else:
                continue
            self._decided.add((number, other))
        return moves

    def refused(self, trial: int) -> list[Move]:
        """Take a trial with invalid hyperparameters as the worst: how many trials a rung has is fixed."""
        return self.reached(trial, WORST)

    @property
    def total_units(self) -> int:
        """How much training the whole search is."""
        return cost(self._units, self._trials)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {
            "values": [for_json(values) for values in self._values],
            "rung_of": list(self._rung_of),
            "decided": sorted(list(pair) for pair in self._decided),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._values = [from_json(values) for values in snapshot["values"]]
        self._rung_of = list(snapshot["rung_of"])
        self._decided = {(number, trial) for number, trial in snapshot["decided"]}
