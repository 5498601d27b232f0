"""The searchers that know all their trials from the start: single, random and grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from det_native.schema.sampling import grid_points, sample_hyperparameters, trial_seeds
from det_native.search.base import (
    REPLACED_PER_TRIAL,
    Action,
    CreateTrial,
    Event,
    Shutdown,
    Started,
    TrialCompleted,
    TrialRefused,
    TrialValidated,
)


@dataclass(frozen=True)
class Plan:
    """The trials of an experiment.

    Attributes
    ----------
    most_replaced : int
        For how many trials that are refused another one is made.
    """

    searcher: str
    size: int
    seed: Callable[[int], int]
    hparams: Callable[[int], dict[str, Any]]
    at_once: int
    most_replaced: int = 0

    def size_with(self, refused: int) -> int:
        """Return the number of trials if so many were refused, those instead of them included."""
        return self.size + min(refused, self.most_replaced)


@dataclass(frozen=True)
class PlanState:
    """How far a plan has come: requests made, those that completed, failed, and were refused."""

    created: int = 0
    completed: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    refused: frozenset[int] = frozenset()

    @property
    def ended(self) -> frozenset[int]:
        """Requests whose trials are over."""
        return self.completed | self.failed | self.refused


def step(plan: Plan, state: PlanState, event: Event) -> tuple[PlanState, list[Action]]:
    """Return the state after an event, and what is to be done.

    Raises
    ------
    ValueError
        If the event is about a request that was never made.
    """
    if isinstance(event, Started):
        if state.created:
            return state, []
    else:
        if not 0 <= event.request < state.created:
            raise ValueError(f"no trial was requested as {event.request}; requests so far: {state.created}")
        if event.request in state.ended or isinstance(event, TrialValidated):
            return state, []
        if isinstance(event, TrialCompleted):
            state = replace(state, completed=state.completed | {event.request})
        elif isinstance(event, TrialRefused):
            state = replace(state, refused=state.refused | {event.request})
        else:
            state = replace(state, failed=state.failed | {event.request})
    size = plan.size_with(len(state.refused))
    if len(state.ended) == size:
        return state, [Shutdown(failed=not state.completed)]
    free = plan.at_once - (state.created - len(state.ended))
    until = min(size, state.created + max(free, 0))
    new: list[Action] = [
        CreateTrial(request, plan.hparams(request), plan.seed(request)) for request in range(state.created, until)
    ]
    return replace(state, created=until), new


class PlannedSearcher:
    """Runs the trials of a plan; satisfies ``Searcher``.

    Raises
    ------
    ValueError
        If the snapshot is of another plan.
    """

    def __init__(self, plan: Plan, snapshot: Mapping[str, Any] | None = None) -> None:
        self._plan = plan
        self._state = PlanState()
        if snapshot is not None:
            made_for = (snapshot["searcher"], snapshot["trials"])
            if made_for != (plan.searcher, plan.size):
                raise ValueError(
                    f"the snapshot is of {made_for[0]} with {made_for[1]} trials, "
                    f"not of {plan.searcher} with {plan.size}"
                )
            self._state = PlanState(
                created=snapshot["created"],
                completed=frozenset(snapshot["completed"]),
                failed=frozenset(snapshot["failed"]),
                refused=frozenset(snapshot.get("refused", ())),  # those of earlier versions have none
            )

    watches_validations = False
    last_stage = 0.0

    def has_stopped(self, request: int) -> bool:
        """Return whether it has had the trial of a request end early: never."""
        return False

    def handle(self, event: Event) -> list[Action]:
        """Take one event; return what is to be done now."""
        self._state, actions = step(self._plan, self._state, event)
        return actions

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {
            "searcher": self._plan.searcher,
            "trials": self._plan.size,
            "created": self._state.created,
            "completed": sorted(self._state.completed),
            "failed": sorted(self._state.failed),
            "refused": sorted(self._state.refused),
        }

    def progress(self, completed_fraction: Mapping[int, float]) -> float:
        """Return how much of the experiment is done, 0 to 1."""
        ended = self._state.ended
        open_trials = set(range(self._state.created)) - ended
        running = sum(min(max(completed_fraction.get(request, 0.0), 0.0), 1.0) for request in open_trials)
        return min((len(ended) + running) / self._plan.size_with(len(self._state.refused)), 1.0)


def sampled_plan(
    searcher: str, hyperparameters: Mapping[str, Any], experiment_seed: int, *, trials: int, at_once: int
) -> Plan:
    """Return a plan of trials with hyperparameters drawn at random, each from its trial's seed."""
    seed = seeds_by_request(trial_seeds(experiment_seed))
    return Plan(
        searcher,
        trials,
        seed,
        lambda request: sample_hyperparameters(hyperparameters, seed(request)),
        at_once or trials,
        most_replaced=REPLACED_PER_TRIAL * trials if trials > 1 else 0,
    )


def grid_plan(hyperparameters: Mapping[str, Any], experiment_seed: int, *, at_once: int) -> Plan:
    """Return a plan with a trial for every point of the grid.

    Raises
    ------
    ConfigurationError
        If the hyperparameters are not a grid.
    """
    points = grid_points(hyperparameters)
    seed = seeds_by_request(trial_seeds(experiment_seed))
    return Plan("grid", len(points), seed, lambda request: points[request], at_once or len(points))


def seeds_by_request(seeds: Iterator[int]) -> Callable[[int], int]:
    """Return what gives the seed of a request; each is drawn when one as high is first asked for."""
    drawn: list[int] = []

    def seed(request: int) -> int:
        drawn.extend(itertools.islice(seeds, max(request + 1 - len(drawn), 0)))
        return drawn[request]

    return seed
