"""Asynchronous successive halving (ASHA, arXiv 1810.05934): no trial waits for the others of its rung."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from typing import Any

from det_native.search.base import REPLACED_PER_TRIAL
from det_native.search.method import Begin, End, Extend, Move, for_json, from_json


@dataclass
class _Rung:
    """The values reached here, best first; who of them was promoted; how many trials are on the way here."""

    values: list[tuple[float, int]] = field(default_factory=list)
    promoted: set[int] = field(default_factory=set)
    awaited: int = 0


class AsyncHalving:
    """Promotes a trial as soon as it is among the best ``1 / divisor`` of what its rung has seen.

    Satisfies ``Method``. Where nobody can be promoted a new trial begins, so that as many trials are open as at the
    start until all have begun.

    Parameters
    ----------
    units : list of int
        Training in total at the end of each rung.
    at_once : int
        How many begin at the start; 0 for as many as the last rung divides by.
    stop_once : bool
        Decide for each trial at once, when it reaches a rung: it trains on if it is among the best of those that have
        reached the rung before, and ends otherwise. Nobody waits for a later promotion.
    """

    def __init__(
        self, units: list[int], *, max_trials: int, divisor: float, at_once: int = 0, stop_once: bool = False
    ) -> None:
        self._units, self._max_trials, self._divisor, self._stop_once = units, max_trials, divisor, stop_once
        most = at_once if at_once > 0 else max(int(divisor ** (len(units) - 1)), 1)
        self._at_once = min(most, max_trials)
        self._rungs = [_Rung() for _ in units]
        self._rung_of: list[int] = []
        self._replaced = 0
        self._closed_to = 0  # rungs before this one have let go of all that were not promoted
        self._let_go: set[int] = set()

    def start(self) -> list[Move]:
        """Return the first moves."""
        return [self._begin() for _ in range(self._at_once)]

    def reached(self, trial: int, value: float) -> list[Move]:
        """Take the value of a trial that has trained as long as it was asked to; return what is to be done now."""
        number = self._rung_of[trial]
        rung = self._rungs[number]
        rung.awaited -= 1
        place = bisect(rung.values, (value, trial))
        rung.values.insert(place, (value, trial))
        last = number == len(self._rungs) - 1
        moves: list[Move] = []
        if last:
            moves.append(End(trial))
        elif self._stop_once:
            moves.append(self._stop_or_extend(number, trial, place))
        else:
            moves += self._promotions(number, place)
        return self._filled_up(moves)

    def refused(self, trial: int) -> list[Move]:
        """Take a trial out of all rungs, since its hyperparameters are invalid; another one begins instead of it."""
        number = self._rung_of[trial]
        self._rungs[number].awaited -= 1
        moves: list[Move] = [End(trial)]
        for below in range(number):
            rung = self._rungs[below]
            rung.values = [entry for entry in rung.values if entry[1] != trial]
            rung.promoted.discard(trial)
            if not self._stop_once and rung.values:
                moves += self._promotions(below, len(rung.values) - 1)
        self._replaced += self._replaced < REPLACED_PER_TRIAL * self._max_trials
        return self._filled_up(moves)

    def _filled_up(self, moves: list[Move]) -> list[Move]:
        """Return moves, with a new trial where none goes on, and the ends of those that nobody promotes any more."""
        if not any(isinstance(move, Extend) for move in moves) and len(self._rung_of) < self._most:
            moves.append(self._begin())
            self._closed_to = 0
        if not self._stop_once:
            moves += self._left_behind()
        return moves

    @property
    def _most(self) -> int:
        """How many trials begin in all, with those instead of refused ones."""
        return self._max_trials + self._replaced

    @property
    def total_units(self) -> int:
        """How much training the whole search is expected to be."""
        total, before = 0, 0
        for number, units in enumerate(self._units):
            total += (units - before) * max(int(self._max_trials / self._divisor**number), 1)
            before = units
        return total

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        rungs = [
            {"values": for_json(rung.values), "promoted": sorted(rung.promoted), "awaited": rung.awaited}
            for rung in self._rungs
        ]
        return {
            "rungs": rungs,
            "rung_of": list(self._rung_of),
            "closed_to": self._closed_to,
            "replaced": self._replaced,
            "let_go": sorted(self._let_go),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._rung_of, self._closed_to = list(snapshot["rung_of"]), snapshot["closed_to"]
        self._rungs = [
            _Rung(from_json(rung["values"]), set(rung["promoted"]), rung["awaited"]) for rung in snapshot["rungs"]
        ]
        self._replaced = snapshot.get("replaced", 0)
        let_go = snapshot.get("let_go")
        if let_go is None:  # of an earlier version, whose rungs did not open again
            closed = self._rungs[: self._closed_to]
            let_go = [trial for rung in closed for _, trial in rung.values if trial not in rung.promoted]
        self._let_go = set(let_go)

    def _begin(self) -> Begin:
        self._rung_of.append(0)
        self._rungs[0].awaited += 1
        return Begin(self._units[0])

    def _extend(self, trial: int, number: int) -> Extend:
        self._rungs[number].promoted.add(trial)
        self._rung_of[trial] = number + 1
        self._rungs[number + 1].awaited += 1
        return Extend(trial, self._units[number + 1])

    def _promotions(self, number: int, place: int) -> list[Move]:
        """Promote whoever is among the best of a rung now, and was not; it is one trial at most, or none.

        All of the best were promoted before `place` was taken. So it can be the trial there, or where that is not among
        them the last one of the best, of whom there may be one more than before.
        """
        rung = self._rungs[number]
        best = int(len(rung.values) / self._divisor)
        if not best:
            return []
        _, trial = rung.values[min(place, best - 1)]
        return [] if trial in rung.promoted or trial in self._let_go else [self._extend(trial, number)]

    def _stop_or_extend(self, number: int, trial: int, place: int) -> Move:
        best = max(int(len(self._rungs[number].values) / self._divisor), 1)
        return self._extend(trial, number) if place < best else End(trial)

    def _left_behind(self) -> list[Move]:
        """End those that nobody will promote any more: all trials have begun, and come through their rung."""
        moves: list[Move] = []
        while self._closed_to < len(self._rungs) - 1 and len(self._rung_of) == self._most:
            rung = self._rungs[self._closed_to]
            if rung.awaited:
                break
            left = [trial for _, trial in rung.values if trial not in rung.promoted and trial not in self._let_go]
            self._let_go.update(left)
            moves += [End(trial) for trial in left]
            self._closed_to += 1
        return moves
