"""Which trials a call means that trains here: configuration, hyperparameters and seed of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from det_native.experimental.settings import Settings, complete_for_fit
from det_native.schema.config import ExperimentConfig
from det_native.schema.environment import TrialEnvironment
from det_native.schema.sampling import grid_points, sample_hyperparameters, trial_seeds


class Sample(NamedTuple):
    """What one trial is trained with.

    Attributes
    ----------
    hparams : dict
        One value for every hyperparameter.
    seed : int
    """

    hparams: dict[str, Any]
    seed: int


def config_of_one_trial(settings: Settings, call: Any) -> ExperimentConfig:
    """Return the configuration of a call that trains here: one trial, with the sample that ``init()`` has drawn.

    Parameters
    ----------
    settings : Settings
    call : FitCall or TorchCall
    """
    config = complete_for_fit(settings, call)
    if config.searcher.name != "single" and not settings.place.test:
        print(
            f"searcher.name is {config.searcher.name}: here, {call.kind}() trains the model as it was built, with one "
            "sample of the hyperparameters. On the cluster it runs the search."
        )
    # init() has drawn the sample that the model was built with: its seed is the experiment's.
    return config.with_seed(call.context.env.config["reproducibility"]["experiment_seed"])


def sample_of_call(config: ExperimentConfig, call: Any) -> Sample:
    """Return the sample of a call that trains the model as ``init()`` had it built."""
    environment: TrialEnvironment = call.context.env
    drawn = sample_hyperparameters(config.hyperparameters, environment.trial_seed)
    return Sample(drawn | environment.hparams, environment.trial_seed)


def samples_of_search(config: ExperimentConfig, *, test: bool) -> Iterator[Sample]:
    """Yield the sample of each trial of a search, the same that the master's searchers would give."""
    searcher = config.searcher
    seed = config.reproducibility.experiment_seed
    assert seed is not None
    seeds = trial_seeds(seed)
    if searcher.name == "grid" and not test:
        yield from map(Sample, grid_points(config.hyperparameters), seeds)
        return
    count = searcher.max_trials if searcher.name == "random" and not test else 1
    for seed in islice(seeds, count):
        yield Sample(sample_hyperparameters(config.hyperparameters, seed), seed)
