"""The searcher that has Optuna choose hyperparameters, from what earlier trials have come to, and stop trials early."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from det_native.schema.conditions import in_order, is_active
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
    parse_space,
)
from det_native.schema.sampling import nested_values, sample_hyperparameters, trial_seeds
from det_native.schema.searcher import OptunaSearcher
from det_native.search.base import (
    REPLACED_PER_TRIAL,
    Action,
    CreateTrial,
    Event,
    Shutdown,
    Started,
    Stop,
    TrialCompleted,
    TrialRefused,
    TrialValidated,
)
from det_native.search.optuna_parts import check_installed, make_study, suggested, suggested_values
from det_native.search.plans import seeds_by_request


class AskTellSearcher:
    """Asks Optuna for each trial, and tells it what has become of it; satisfies ``Searcher``.

    The state is what it was told, in its order: told again to a new sampler and pruner of the same seed, it gives the
    same trials, of which the same are stopped. The first trial has what the notebook has seen: a sample drawn from the
    trial's seed, as in the other searches. A sampler that has tried all there is ends the search before `max_trials`.

    Raises
    ------
    MissingDependencyError
        If the sampler cannot run here.
    ConfigurationError
        If Optuna has no such sampler or pruner.
    ValueError
        If the snapshot is of another searcher.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        searcher: OptunaSearcher,
        *,
        seed: int,
        snapshot: Mapping[str, Any] | None = None,
    ) -> None:
        check_installed(searcher.sampler)
        self._space = parse_space(space)
        self._leaves = dict(in_order(leaves(self._space)))
        self._searcher = searcher
        self._seed = seeds_by_request(trial_seeds(seed))
        self._size = searcher.max_trials
        self._study = make_study(searcher, seed)
        # A sampler that has tried all there is calls this; Optuna's own is for its optimize() only.
        self._study.stop = self._ask_no_more
        self._has_tried_all = False
        self._asked: list[Any] = []
        self._told: list[list[Any]] = []
        self._ended: dict[int, bool] = {}  # whether it has come to something, by request
        self._reached: dict[int, int] = {}  # the units at the last validation, by request
        self._pruned: set[int] = set()
        if snapshot is not None:
            self._restore(snapshot)

    @property
    def watches_validations(self) -> bool:
        """Whether it is to be told of validations of trials that train on."""
        return self._searcher.prunes

    last_stage = 0.0

    def has_stopped(self, request: int) -> bool:
        """Return whether it has had the trial of a request end early."""
        return request in self._pruned

    def handle(self, event: Event) -> list[Action]:
        """Take one event; return what is to be done now.

        Raises
        ------
        ValueError
            If the event is about a request that was never made.
        """
        if isinstance(event, Started):
            return [] if self._asked else self._ask()
        request = event.request
        if not 0 <= request < len(self._asked):
            raise ValueError(f"no trial was requested as {request}; requests so far: {len(self._asked)}")
        if request in self._ended:
            return []
        if isinstance(event, TrialValidated):
            return self._validated(event)
        if isinstance(event, TrialRefused):
            self._refuse(request)
        else:
            self._end(request, self._values(event) if isinstance(event, TrialCompleted) else None)
        if len(self._ended) == self._planned:
            return [Shutdown(failed=not any(self._ended.values()))]
        return self._ask()

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        return {
            "searcher": "optuna",
            "sampler": self._searcher.sampler,
            "begun": bool(self._asked),
            "told": [list(each) for each in self._told],
        }

    def progress(self, completed_fraction: Mapping[int, float]) -> float:
        """Return how much of the experiment is done, 0 to 1."""
        running = set(range(len(self._asked))) - set(self._ended)
        parts = sum(min(max(completed_fraction.get(request, 0.0), 0.0), 1.0) for request in running)
        return min((len(self._ended) + parts) / self._planned, 1.0)

    @property
    def _planned(self) -> int:
        """How many trials there will have been."""
        return len(self._asked) if self._has_tried_all else self._size

    def _ask_no_more(self) -> None:
        self._has_tried_all = True

    def _restore(self, snapshot: Mapping[str, Any]) -> None:
        if (snapshot["searcher"], snapshot["sampler"]) != ("optuna", self._searcher.sampler):
            raise ValueError(f"the snapshot is of {snapshot['searcher']}, not of optuna with {self._searcher.sampler}")
        if snapshot["begun"]:
            self._ask()
        # Those of before pruners have the ends only, with one metric.
        earlier = ((request, metric) for request, metric in snapshot.get("ended", ()))
        only_ends = [["ended", request, None if metric is None else [metric]] for request, metric in earlier]
        for what, request, *rest in snapshot.get("told", only_ends):
            if what == "validated":
                self._report(request, *rest)
            elif what == "refused":
                self._refuse(request)
                self._ask()
            else:
                self._end(request, *rest)
                self._ask()

    def _validated(self, event: TrialValidated) -> list[Action]:
        """Ask the pruner, once for each unit of the length, and until it has stopped the trial."""
        known = self._reached.get(event.request, 0)
        if not self.watches_validations or event.request in self._pruned or event.units <= known:
            return []
        if not _usable(event.metric):
            return []
        return [Stop(event.request)] if self._report(event.request, event.units, event.metric) else []

    def _report(self, request: int, units: int, metric: Any) -> bool:
        """Tell the pruner of a value; return whether it stops the trial. It may note by this who has come how far."""
        self._told.append(["validated", request, units, metric])
        self._reached[request] = units
        trial = self._asked[request]
        trial.report(metric, units)
        if trial.should_prune():
            self._pruned.add(request)
            return True
        return False

    def _values(self, event: TrialCompleted) -> list[float] | None:
        """Return what a trial has come to, in the order of the metrics; None if one of them is no number."""
        values = event.metrics if len(self._searcher.compared) > 1 else (event.metric,)
        usable = [value for value in values if value is not None and _usable(value)]
        return usable if len(usable) == len(self._searcher.compared) else None

    def _end(self, request: int, values: Sequence[float] | None) -> None:
        import optuna

        self._told.append(["ended", request, None if values is None else list(values)])
        self._ended[request] = values is not None or request in self._pruned
        trial = self._asked[request]
        if request in self._pruned:
            self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)  # with the last value that it has reported
        elif values is not None:
            self._study.tell(trial, list(values))
        else:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def _refuse(self, request: int) -> None:
        """Have one trial more instead of one whose hyperparameters are invalid; the sampler learns that they are."""
        import optuna

        self._told.append(["refused", request])
        self._ended[request] = False
        self._size += self._size < (1 + REPLACED_PER_TRIAL) * self._searcher.max_trials
        self._study.tell(self._asked[request], state=optuna.trial.TrialState.FAIL)

    def _ask(self) -> list[Action]:
        """Begin as many trials as may be open."""
        until = min(self._planned, len(self._ended) + self._searcher.max_concurrent_trials)
        return [self._ask_one(request) for request in range(len(self._asked), until)]

    def _ask_one(self, request: int) -> CreateTrial:
        if request == 0:
            return self._ask_first()
        trial = self._study.ask()
        self._asked.append(trial)
        values = suggested_values(trial, self._leaves)
        return CreateTrial(request, self._nested(values), self._seed(request))

    def _ask_first(self) -> CreateTrial:
        sample = sample_hyperparameters(self._space, self._seed(0))
        values: dict[tuple[str, ...], Any] = {}
        for path, leaf in self._leaves.items():
            if is_active(leaf, values):
                values[path] = functools.reduce(lambda group, name: group[name], path, sample)
        searched = ((path, leaf) for path, leaf in self._leaves.items() if not isinstance(leaf, ConstHyperparameter))
        drawn = {".".join(path): _drawn_for(leaf, values[path]) for path, leaf in searched if path in values}
        self._study.enqueue_trial(drawn)
        trial = self._study.ask()
        self._asked.append(trial)
        for path in values:
            suggested(trial, ".".join(path), self._leaves[path])
        return CreateTrial(0, sample, self._seed(0))

    @staticmethod
    def _nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
        ordered = ((path, values[path]) for path in sorted(values))
        return nested_values(ordered)


def _drawn_for(leaf: Leaf, value: Any) -> Any:
    """Return what a sampler draws to give this value."""
    match leaf:
        case LogHyperparameter():
            return min(max(math.log(value, leaf.base), leaf.minval), leaf.maxval)
        case CategoricalHyperparameter():
            return next(place for place, one in enumerate(leaf.vals) if type(one) is type(value) and one == value)
        case _:
            return value


def _usable(metric: float | None) -> bool:
    return metric is not None and abs(metric) < float("inf")  # not a number is neither
