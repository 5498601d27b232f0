"""Several searches beside each other, which share nothing but the space: the brackets of ``adaptive``."""

from __future__ import annotations

from typing import Any

from det_native.search.method import Begin, End, Extend, Method, Move


class Tournament:
    """Numbers the trials of several methods in the order they begin. Satisfies ``Method``."""

    def __init__(self, methods: list[Method]) -> None:
        self._methods = methods
        self._place: list[tuple[int, int]] = []  # of each trial: its method, and its number there
        self._numbers: list[list[int]] = [[] for _ in methods]

    def start(self) -> list[Move]:
        """Return the first moves."""
        return [move for number, method in enumerate(self._methods) for move in self._outside(number, method.start())]

    def reached(self, trial: int, value: float) -> list[Move]:
        """Take the value of a trial; return what is to be done now."""
        number, inner = self._place[trial]
        return self._outside(number, self._methods[number].reached(inner, value))

    def refused(self, trial: int) -> list[Move]:
        """Take that a trial has no value; return what is to be done now."""
        number, inner = self._place[trial]
        return self._outside(number, self._methods[number].refused(inner))

    @property
    def total_units(self) -> int:
        """How much training the whole search is expected to be."""
        return sum(method.total_units for method in self._methods)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {"methods": [method.snapshot() for method in self._methods], "of": [one for one, _ in self._place]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for method, state in zip(self._methods, snapshot["methods"], strict=True):
            method.restore(state)
        self._place, self._numbers = [], [[] for _ in self._methods]
        for number in snapshot["of"]:
            self._add(number)

    def bracket(self, trial: int) -> int:
        """Return which method a trial belongs to."""
        return self._place[trial][0]

    def _add(self, number: int) -> None:
        self._numbers[number].append(len(self._place))
        self._place.append((number, len(self._numbers[number]) - 1))

    def _outside(self, number: int, moves: list[Move]) -> list[Move]:
        """Return the moves of a method with our numbers."""
        found: list[Move] = []
        for move in moves:
            match move:
                case Begin(units, parent):
                    self._add(number)
                    found.append(Begin(units, None if parent is None else self._numbers[number][parent]))
                case Extend(trial, units):
                    found.append(Extend(self._numbers[number][trial], units))
                case End(trial):
                    found.append(End(self._numbers[number][trial]))
        return found
