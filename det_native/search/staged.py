"""The searchers that train in stages: a method's decisions made into actions of an experiment."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from det_native.schema import numbers
from det_native.schema.sampling import trial_seeds
from det_native.search.base import (
    Action,
    Close,
    CreateTrial,
    Event,
    Shutdown,
    Started,
    TrainTo,
    TrialCompleted,
    TrialRefused,
    TrialValidated,
)
from det_native.search.method import WORST, Begin, End, Extend, Method, Move, value_of


@dataclass
class _Request:
    """What was asked for one trial, and what became of it.

    `over` means that it cannot train on: it has failed, was refused, or has ended by itself; `value` is then its value
    for ever.
    """

    units: int
    parent: int | None = None
    reached: int = 0
    over: bool = False
    failed: bool = False
    refused: bool = False
    closed: bool = False
    value: float | None = None


class StagedSearcher:
    """Runs the trials that a method asks for; satisfies ``Searcher``.

    A trial that has failed, or has ended by itself, stays in the search with the value it has (the worst one if it
    failed): where the method would train it on, it is as if it had done so, to no better value. So is one that is to
    train on to where it is already, since rungs of a short search may have the same length.

    Parameters
    ----------
    method : Method
        In its first state.
    seed : int
        The experiment's; it gives the trials' seeds.
    last_units : int
        How long the last stage of a trial is, where it is likely to train alone.
    hparams : callable
        Gives the hyperparameters for a trial's seed, and those of its parent (None for a trial that has none).

    Raises
    ------
    ValueError
        If the snapshot is of another searcher.
    """

    def __init__(
        self,
        name: str,
        method: Method,
        *,
        seed: int,
        last_units: int = 0,
        hparams: Callable[[int, dict[str, Any] | None], dict[str, Any]],
        smaller_is_better: bool,
        snapshot: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._method, self._last_units = name, method, last_units
        self._draw, self._smaller_is_better = hparams, smaller_is_better
        self._all_seeds = trial_seeds(seed)
        self._seeds: list[int] = []
        self._requests: list[_Request] = []
        self._shut_down = False
        if snapshot is not None:
            if snapshot["searcher"] != name:
                raise ValueError(f"the snapshot is of {snapshot['searcher']}, not of {name}")
            self._requests = [
                _Request(**{**one, "value": numbers.number(one["value"])}) for one in snapshot["requests"]
            ]
            self._seeds = list(itertools.islice(self._all_seeds, len(self._requests)))
            self._shut_down = snapshot["shut_down"]
            method.restore(snapshot["method"])
        self._open = sum(not request.closed for request in self._requests)

    watches_validations = False

    @property
    def last_stage(self) -> float:
        """Share of all training that the last stage of one trial is, which may run alone."""
        return min(self._last_units / max(self._method.total_units, 1), 1.0)

    def has_stopped(self, request: int) -> bool:
        """Return whether it has had the trial of a request end early: never."""
        return False

    def handle(self, event: Event) -> list[Action]:
        """Take one event; return what is to be done now.

        Raises
        ------
        ValueError
            If the event is about a request that was never made.
        """
        if isinstance(event, Started):
            return [] if self._requests else self._do(self._method.start())
        if isinstance(event, TrialValidated):
            return []
        if not 0 <= event.request < len(self._requests):
            raise ValueError(f"no trial was requested as {event.request}; requests so far: {len(self._requests)}")
        request = self._requests[event.request]
        running = not request.over and not request.closed and request.reached < request.units
        if isinstance(event, TrialCompleted):
            early = event.units is not None and event.units < request.units and not event.over
            if not running or early:
                return []
            value = value_of(event.metric, smaller_is_better=self._smaller_is_better)
            request.over = event.over
        else:
            if not running:
                return []
            value = WORST
            request.over = request.failed = True
            request.refused = isinstance(event, TrialRefused)
        request.reached = request.units
        request.value = None if value == WORST else value
        if request.refused:
            return self._do(self._method.refused(event.request))
        return self._do(self._method.reached(event.request, value))

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {
            "searcher": self._name,
            "requests": [dict(vars(request)) for request in self._requests],
            "shut_down": self._shut_down,
            "method": self._method.snapshot(),
        }

    def progress(self, completed_fraction: Mapping[int, float]) -> float:
        """Return how much of the experiment is done, 0 to 1: of the training that the search is expected to be."""
        if self._shut_down:
            return 1.0
        done = 0.0
        for number, request in enumerate(self._requests):
            if request.refused:
                continue  # another one is trained instead
            share = min(max(completed_fraction.get(number, 0.0), 0.0), 1.0)
            done += max(request.reached, 0 if request.closed else share * request.units)
        return min(done / max(self._method.total_units, 1), 1.0)

    def _do(self, first: Iterable[Move]) -> list[Action]:
        actions: list[Action] = []
        moves = deque(first)
        while moves:
            match moves.popleft():
                case Begin(units, parent):
                    actions.append(self._create(units, parent))
                case Extend(trial, units):
                    request = self._requests[trial]
                    request.units = units
                    if request.over or units <= request.reached:  # short rungs may end at the same length
                        request.reached = units
                        moves += self._method.reached(trial, WORST if request.value is None else request.value)
                    else:
                        actions.append(TrainTo(trial, units))
                case End(trial):
                    self._requests[trial].closed = True
                    self._open -= 1
                    if not self._requests[trial].failed:
                        actions.append(Close(trial))
        if not self._shut_down and not self._open:
            self._shut_down = True
            actions.append(Shutdown(failed=all(request.failed for request in self._requests)))
        return actions

    def _create(self, units: int, parent: int | None) -> CreateTrial:
        number = len(self._requests)
        self._requests.append(_Request(units, parent))
        self._open += 1
        self._seeds.append(next(self._all_seeds))
        return CreateTrial(number, self._hparams(number), self._seeds[number], units, parent)

    def _hparams(self, number: int) -> dict[str, Any]:
        """Return the hyperparameters of a request; they follow from the seeds, so a snapshot need not hold them."""
        line = [number]
        while (parent := self._requests[line[-1]].parent) is not None:
            line.append(parent)
        found: dict[str, Any] | None = None
        for one in reversed(line):
            found = self._draw(self._seeds[one], found)
        assert found is not None
        return found
