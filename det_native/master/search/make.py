"""From an experiment's configuration to its searcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.errors import ArgumentError, UnsupportedFeatureError
from det_native.master.search.base import Searcher
from det_native.master.search.plans import Plan, PlannedSearcher, grid_plan, sampled_plan
from det_native.schema.config import ExperimentConfig
from det_native.schema.searcher import GridSearcher, RandomSearcher, SingleSearcher


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
    UnsupportedFeatureError
        For a searcher that comes with a later version.
    """
    seed = config.reproducibility.experiment_seed
    if seed is None:
        raise ArgumentError("reproducibility.experiment_seed is not fixed; use config.with_seed(...) first.")
    return PlannedSearcher(_plan(config, seed), snapshot)


def _plan(config: ExperimentConfig, seed: int) -> Plan:
    match config.searcher:
        case SingleSearcher():
            return sampled_plan("single", config.hyperparameters, seed, trials=1, at_once=1)
        case RandomSearcher() as searcher:
            return sampled_plan(
                "random",
                config.hyperparameters,
                seed,
                trials=searcher.max_trials,
                at_once=searcher.max_concurrent_trials,
            )
        case GridSearcher() as searcher:
            return grid_plan(config.hyperparameters, seed, at_once=searcher.max_concurrent_trials)
        case searcher:
            raise UnsupportedFeatureError(
                f"searcher.name: {searcher.name} comes with a later version; single, random and grid run now."
            )
