"""The searcher that has Optuna's samplers choose hyperparameters, from what earlier trials have come to."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Mapping
from typing import Any, Literal

from det_native.errors import MissingDependencyError
from det_native.schema.hyperparameters import (
    CategoricalHyperparameter,
    ConstHyperparameter,
    DoubleHyperparameter,
    IntHyperparameter,
    Leaf,
    LogHyperparameter,
    leaves,
    parse_space,
)
from det_native.schema.sampling import nested_values, trial_seeds
from det_native.search.base import Action, CreateTrial, Event, Shutdown, Started, TrialCompleted

Sampler = Literal["tpe", "gp", "cmaes", "nsga2", "random"]

# What else a sampler imports.
_MORE: dict[str, tuple[str, ...]] = {"gp": ("scipy", "torch"), "cmaes": ("cmaes",)}


def check_installed(sampler: Sampler) -> None:
    """Refuse a sampler that cannot run here.

    Raises
    ------
    MissingDependencyError
        If Optuna, or what this sampler needs beside it, is not installed.
    """
    missing = [name for name in ("optuna", *_MORE.get(sampler, ())) if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"searcher.sampler: {sampler} needs {' and '.join(missing)}, which the master's environment does not have: "
            "pip install 'det-native[optuna]' there, or choose another searcher."
        )


class AskTellSearcher:
    """Asks a sampler for each trial, and tells it what has become of it; satisfies ``Searcher``.

    The state is the events in their order: told again to a new sampler of the same seed, they give the same trials.

    Parameters
    ----------
    space : mapping
        The hyperparameters of the configuration.
    sampler : str
    seed : int
        The experiment's.
    trials, at_once : int
        How many trials there are, and how many are open at the same time.
    smaller_is_better : bool
    snapshot : mapping, optional
        Where to continue, from ``snapshot()``.

    Raises
    ------
    MissingDependencyError
        If the sampler cannot run here.
    ValueError
        If the snapshot is of another searcher.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        *,
        sampler: Sampler,
        seed: int,
        trials: int,
        at_once: int,
        smaller_is_better: bool,
        snapshot: Mapping[str, Any] | None = None,
    ) -> None:
        check_installed(sampler)
        self._leaves = dict(leaves(parse_space(space)))
        self._at_once = at_once
        self._sampler = sampler
        self._seeds = tuple(itertools.islice(trial_seeds(seed), trials))
        self._study = _study(sampler, seed, smaller_is_better=smaller_is_better)
        self._asked: list[Any] = []
        self._ended: list[tuple[int, float | None]] = []
        if snapshot is not None:
            if (snapshot["searcher"], snapshot["sampler"]) != ("optuna", sampler):
                raise ValueError(f"the snapshot is of {snapshot['searcher']}, not of optuna with {sampler}")
            if snapshot["begun"]:
                self._ask()
            for request, metric in snapshot["ended"]:
                self._end(request, metric)
                self._ask()

    def handle(self, event: Event) -> list[Action]:
        """Take one event; return what is to be done now.

        Raises
        ------
        ValueError
            If the event is about a request that was never made.
        """
        if isinstance(event, Started):
            return [] if self._asked else self._ask()
        if not 0 <= event.request < len(self._asked):
            raise ValueError(f"no trial was requested as {event.request}; requests so far: {len(self._asked)}")
        if any(request == event.request for request, _ in self._ended):
            return []
        self._end(event.request, event.metric if isinstance(event, TrialCompleted) else None)
        if len(self._ended) == len(self._seeds):
            return [Shutdown(failed=all(metric is None for _, metric in self._ended))]
        return self._ask()

    def snapshot(self) -> dict[str, Any]:
        """Return the state as data that JSON can hold."""
        ended = [list(each) for each in self._ended]
        return {"searcher": "optuna", "sampler": self._sampler, "begun": bool(self._asked), "ended": ended}

    def progress(self, completed_fraction: Mapping[int, float]) -> float:
        """Return how much of the experiment is done, 0 to 1."""
        running = set(range(len(self._asked))) - {request for request, _ in self._ended}
        parts = sum(min(max(completed_fraction.get(request, 0.0), 0.0), 1.0) for request in running)
        return min((len(self._ended) + parts) / len(self._seeds), 1.0)

    def _end(self, request: int, metric: float | None) -> None:
        usable = metric is not None and abs(metric) < float("inf")  # not a number is neither
        self._ended.append((request, metric if usable else None))
        if usable:
            self._study.tell(self._asked[request], metric)
        else:
            import optuna

            self._study.tell(self._asked[request], state=optuna.trial.TrialState.FAIL)

    def _ask(self) -> list[Action]:
        """Begin as many trials as may be open."""
        until = min(len(self._seeds), len(self._ended) + self._at_once)
        return [self._ask_one(request) for request in range(len(self._asked), until)]

    def _ask_one(self, request: int) -> CreateTrial:
        searched = {path: leaf for path, leaf in self._leaves.items() if not isinstance(leaf, ConstHyperparameter)}
        asked = self._study.ask({".".join(path): _distribution(leaf) for path, leaf in searched.items()})
        self._asked.append(asked)
        values = (
            (path, _value(leaf, asked.params[".".join(path)]) if path in searched else leaf.val)  # type: ignore[union-attr]
            for path, leaf in self._leaves.items()
        )
        return CreateTrial(request, nested_values(values), self._seeds[request])


def _study(sampler: Sampler, seed: int, *, smaller_is_better: bool) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    match sampler:
        case "tpe":
            made: Any = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        case "gp":
            made = optuna.samplers.GPSampler(seed=seed)
        case "cmaes":
            made = optuna.samplers.CmaEsSampler(seed=seed)
        case "nsga2":
            made = optuna.samplers.NSGAIISampler(seed=seed)
        case "random":
            made = optuna.samplers.RandomSampler(seed=seed)
    return optuna.create_study(sampler=made, direction="minimize" if smaller_is_better else "maximize")


def _distribution(leaf: Leaf) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match leaf:
        case IntHyperparameter():
            return IntDistribution(leaf.minval, leaf.maxval)
        case DoubleHyperparameter() | LogHyperparameter():  # of a logarithmic one, the exponent is drawn
            return FloatDistribution(leaf.minval, leaf.maxval)
        case CategoricalHyperparameter():  # by its place, since a value may be a list
            return CategoricalDistribution(range(len(leaf.vals)))
        case _:
            raise TypeError(f"{leaf} is not searched")


def _value(leaf: Leaf, drawn: Any) -> Any:
    match leaf:
        case LogHyperparameter():
            return leaf.value(drawn)
        case CategoricalHyperparameter():
            return leaf.vals[drawn]
        case _:
            return drawn
