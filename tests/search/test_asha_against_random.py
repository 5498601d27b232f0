"""Goal 6c: on 25 workers whose trials take unequally long, ASHA finds a top configuration far sooner than chance."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from simulated_search import configuration

from det_native.search.simulation import SimulatedTrial, simulate

pytestmark = pytest.mark.slow

WORKERS, LENGTH, TOP = 25, 256, 0.001
ASHA = {"name": "async_halving", "max_length": LENGTH, "num_rungs": 5, "divisor": 4, "max_trials": 20_000}
RANDOM = {"name": "random", "max_length": LENGTH, "max_trials": 20_000}


def time_to_a_top_configuration(seed: int, **searcher: object) -> float:
    """Return when the first configuration of the best thousandth has been trained to the end.

    What is left of a trial's error shrinks as it trains, at a rate of its own, to what its configuration is worth; each
    measurement has some noise. How long a batch takes has a heavy tail: one trial in twenty takes ten times as long.
    """
    draws = random.Random(seed)
    pace: dict[int, float] = {}

    def quality(trial: SimulatedTrial) -> float:
        return float(trial.hparams["x"])

    def value(request: int, trial: SimulatedTrial) -> float:
        return quality(trial) + math.exp(-3 * trial.units[-1] / LENGTH) * 0.5 + draws.gauss(0, 0.02)

    def seconds(request: int, units: int) -> float:
        return units * pace.setdefault(request, draws.paretovariate(1.5))

    def found(request: int, trial: SimulatedTrial) -> bool:
        return quality(trial) < TOP and trial.units[-1] == LENGTH

    trials = simulate(configuration(seed, **searcher), value, workers=WORKERS, seconds=seconds, until=found)
    return max(trial.ends[-1] for trial in trials if trial.ends and found(0, trial))


@pytest.mark.parametrize("seeds", [3, pytest.param(9, marks=pytest.mark.long)])
def test_asha_is_at_least_eight_times_sooner_than_random_search(seeds: int) -> None:
    ratios = [
        time_to_a_top_configuration(seed, **RANDOM) / time_to_a_top_configuration(seed, **ASHA) for seed in range(seeds)
    ]
    assert statistics.geometric_mean(ratios) >= 8, ratios
