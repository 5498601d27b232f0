"""From an experiment's configuration to its searcher."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from det_native.errors import ArgumentError, ConfigurationError, Problem
from det_native.schema.config import ExperimentConfig
from det_native.schema.hyperparameters import ConstHyperparameter, parse_space
from det_native.schema.lengths import Unit
from det_native.schema.sampling import explore_hyperparameters, grid_points, sample_hyperparameters
from det_native.schema.searcher import (
    AdaptiveAshaSearcher,
    AdaptiveSearcher,
    AdaptiveSimpleSearcher,
    AsyncHalvingSearcher,
    GridSearcher,
    OptunaSearcher,
    PbtSearcher,
    RandomSearcher,
    SingleSearcher,
    SyncHalvingSearcher,
)
from det_native.search.ask_tell import AskTellSearcher
from det_native.search.async_halving import AsyncHalving
from det_native.search.base import Searcher
from det_native.search.brackets import (
    at_once_by_bracket,
    rung_units,
    rungs_of_mode,
    trials_by_weight,
    trials_evenly,
    trials_of_budget,
    trials_of_number,
    useful_rungs,
)
from det_native.search.method import Method
from det_native.search.optuna_parts import check_searcher
from det_native.search.pbt import PopulationBased
from det_native.search.plans import PlannedSearcher, grid_plan, sampled_plan
from det_native.search.staged import StagedSearcher
from det_native.search.sync_halving import SyncHalving
from det_native.search.tournament import Tournament

#: What a search may have at most whose number of trials is worked out from other fields.
MOST_TRIALS = 10_000


def check_search(config: ExperimentConfig) -> None:
    """Refuse a search that cannot be run as it is configured, though each of its fields is valid.

    Raises
    ------
    ConfigurationError
        If it would have too many trials, its first stage is less than a batch, or Optuna cannot run it.
    MissingDependencyError
        If the searcher needs a package that is not installed.
    """
    if isinstance(config.searcher, StagedConfig):
        _check_first_stage(config, config.searcher)
    match config.searcher:
        case OptunaSearcher() as optuna:
            check_searcher(optuna, config.hyperparameters)
        case SyncHalvingSearcher() | AdaptiveSearcher() | PbtSearcher() as searcher:
            trials = _trials_in_all(searcher)
            if trials > MOST_TRIALS:
                fields = "population_size or num_rounds" if isinstance(searcher, PbtSearcher) else "budget"
                what = f"comes to {trials:,} trials, more than the {MOST_TRIALS:,} that it may have."
                problem = Problem("searcher", what, f"Lower {fields}.")
                raise ConfigurationError("The experiment configuration is not valid:", [problem])


def make_searcher(config: ExperimentConfig, snapshot: Mapping[str, Any] | None = None) -> Searcher:
    """Return the searcher of an experiment.

    Parameters
    ----------
    config : ExperimentConfig
        With ``reproducibility.experiment_seed`` fixed: all randomness comes from it.
    snapshot : mapping, optional
        Where to continue, from ``Searcher.snapshot()`` under the same configuration.

    Raises
    ------
    ArgumentError
        If the seed is not fixed.
    MissingDependencyError
        If the searcher needs a package that is not installed.
    """
    seed = config.reproducibility.experiment_seed
    if seed is None:
        raise ArgumentError("reproducibility.experiment_seed is not fixed; use config.with_seed(...) first.")
    space = parse_space(config.hyperparameters)
    match config.searcher:
        case SingleSearcher():
            return PlannedSearcher(sampled_plan("single", space, seed, trials=1, at_once=1), snapshot)
        case RandomSearcher(max_trials=trials, max_concurrent_trials=at_once):
            return PlannedSearcher(sampled_plan("random", space, seed, trials=trials, at_once=at_once), snapshot)
        case GridSearcher(max_concurrent_trials=at_once):
            return PlannedSearcher(grid_plan(space, seed, at_once=at_once), snapshot)
        case OptunaSearcher() as searcher:
            return AskTellSearcher(space, searcher, seed=seed, snapshot=snapshot)
        case searcher:
            return StagedSearcher(
                searcher.name,
                make_method(searcher),
                seed=seed,
                last_units=_last_units(searcher),
                hparams=partial(_hparams, space, searcher),
                smaller_is_better=searcher.smaller_is_better,
                snapshot=snapshot,
            )


def planned_trials(config: ExperimentConfig) -> int | None:
    """Return how many trials a search has; None where what they come to decides it."""
    match config.searcher:
        case SingleSearcher():
            return 1
        case RandomSearcher(max_trials=trials) | OptunaSearcher(max_trials=trials):
            return trials
        case GridSearcher():
            return len(grid_points(config.hyperparameters))
        case AsyncHalvingSearcher(max_trials=trials) | AdaptiveAshaSearcher(max_trials=trials):
            return trials
        case AdaptiveSimpleSearcher(max_trials=trials):
            return trials
        case _:
            return None


StagedConfig = (
    SyncHalvingSearcher
    | AsyncHalvingSearcher
    | AdaptiveSearcher
    | AdaptiveSimpleSearcher
    | AdaptiveAshaSearcher
    | PbtSearcher
)


def make_method(searcher: StagedConfig) -> Method:
    """Return what decides how long each trial trains, in its first state."""
    match searcher:
        case AsyncHalvingSearcher():
            return AsyncHalving(
                rung_units(searcher.max_length.units, searcher.divisor, searcher.num_rungs),
                max_trials=searcher.max_trials,
                divisor=searcher.divisor,
                at_once=searcher.max_concurrent_trials,
                stop_once=searcher.stop_once,
            )
        case SyncHalvingSearcher():
            return _synchronous(searcher, searcher.num_rungs, budget=searcher.budget.units)
        case AdaptiveAshaSearcher():
            return _adaptive_asha(searcher)
        case AdaptiveSearcher():
            brackets = _brackets(searcher, searcher.max_rungs)
            share = searcher.budget.units // len(brackets)
            return Tournament([_synchronous(searcher, rungs, budget=share) for rungs in brackets])
        case AdaptiveSimpleSearcher():
            brackets = _brackets(searcher, searcher.max_rungs)
            numbers = trials_evenly(searcher.max_trials, len(brackets))
            return Tournament(
                [_synchronous(searcher, rungs, trials=trials) for rungs, trials in zip(brackets, numbers, strict=True)]
            )
        case PbtSearcher():
            return PopulationBased(
                population=searcher.population_size,
                rounds=searcher.num_rounds,
                units=searcher.length_per_round.units,
                truncate_fraction=searcher.replace_function.truncate_fraction,
            )


def _check_first_stage(config: ExperimentConfig, searcher: StagedConfig) -> None:
    """Refuse stages in records that are less than a batch, where all trials have the same batch size."""
    size = config.hyperparameters.get("global_batch_size")
    if searcher.max_length.unit is not Unit.RECORDS or not isinstance(size, ConstHyperparameter):
        return
    units = _first_units(searcher)
    if 0 < units < size.val:
        records = f"{units:,} record{'s' * (units > 1)}"
        what = f"has trials train for {records} first, which is less than one batch (of {size.val})."
        remedy = "Use a greater length, fewer rungs or a smaller hyperparameters.global_batch_size."
        raise ConfigurationError("The experiment configuration is not valid:", [Problem("searcher", what, remedy)])


def _last_units(searcher: StagedConfig) -> int:
    """Return how long a trial trains that was decided on for the last time, where it is likely to do so alone."""
    if not isinstance(searcher, AsyncHalvingSearcher | AdaptiveAshaSearcher):
        return 0  # the others take all that are left to the end together
    return round(searcher.max_length.units * (1 - 1 / searcher.divisor))


def _first_units(searcher: StagedConfig) -> int:
    """Return how long trials train that are decided on earliest."""
    length, divisor = searcher.max_length.units, getattr(searcher, "divisor", 1.0)
    match searcher:
        case PbtSearcher():
            return searcher.length_per_round.units
        case AsyncHalvingSearcher() | SyncHalvingSearcher():
            rungs = searcher.num_rungs
        case AdaptiveAshaSearcher():
            rungs = _brackets(searcher, useful_rungs(searcher.max_rungs, length, searcher.max_trials, divisor))[0]
        case _:
            rungs = _brackets(searcher, searcher.max_rungs)[0]
    return rung_units(length, divisor, rungs)[0]


def _trials_in_all(searcher: SyncHalvingSearcher | AdaptiveSearcher | PbtSearcher) -> int:
    if isinstance(searcher, PbtSearcher):
        replaced = int(searcher.replace_function.truncate_fraction * searcher.population_size)
        return searcher.population_size + (searcher.num_rounds - 1) * replaced
    brackets = (
        _brackets(searcher, searcher.max_rungs) if isinstance(searcher, AdaptiveSearcher) else [searcher.num_rungs]
    )
    share, length = searcher.budget.units // len(brackets), searcher.max_length.units
    return sum(trials_of_budget(share, length, searcher.divisor, rungs)[0] for rungs in brackets)


def _adaptive_asha(searcher: AdaptiveAshaSearcher) -> Tournament:
    length, divisor = searcher.max_length.units, searcher.divisor
    brackets = _brackets(searcher, useful_rungs(searcher.max_rungs, length, searcher.max_trials, divisor))
    numbers = trials_by_weight(searcher.max_trials, divisor, brackets)
    at_once = at_once_by_bracket(searcher.max_concurrent_trials, divisor, numbers)
    return Tournament(
        [
            AsyncHalving(
                rung_units(length, divisor, rungs),
                max_trials=trials,
                divisor=divisor,
                at_once=limit,
                stop_once=searcher.stop_once,
            )
            for rungs, trials, limit in zip(brackets, numbers, at_once, strict=True)
        ]
    )


def _brackets(searcher: AdaptiveSearcher | AdaptiveSimpleSearcher | AdaptiveAshaSearcher, max_rungs: int) -> list[int]:
    """Return the rungs of each bracket, most first: what stops most trials early is begun first."""
    return sorted(searcher.bracket_rungs, reverse=True) or rungs_of_mode(searcher.mode, max_rungs)


def _synchronous(
    searcher: SyncHalvingSearcher | AdaptiveSearcher | AdaptiveSimpleSearcher,
    rungs: int,
    *,
    budget: int | None = None,
    trials: int = 1,
) -> SyncHalving:
    length, divisor = searcher.max_length.units, searcher.divisor
    if budget is not None:
        numbers = trials_of_budget(budget, length, divisor, rungs)
    else:
        numbers = trials_of_number(trials, divisor, rungs)
    return SyncHalving(rung_units(length, divisor, rungs), numbers)


def _hparams(
    space: Mapping[str, Any], searcher: StagedConfig, seed: int, parent: dict[str, Any] | None
) -> dict[str, Any]:
    if parent is None or not isinstance(searcher, PbtSearcher):
        return sample_hyperparameters(space, seed)
    explore = searcher.explore_function
    return explore_hyperparameters(
        space,
        parent,
        seed,
        resample_probability=explore.resample_probability,
        perturb_factor=explore.perturb_factor,
    )
