"""A search of short trials: what each costs over its own work. Measured, with a limit that a busy machine keeps to."""

from __future__ import annotations

import itertools
import statistics
from datetime import datetime

import pytest
from faults import Cluster, Kernel

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

TRIALS = 6
# The goal on a quiet machine is 0.5 s, as `make bench` has it.
LIMIT_SECONDS = 2.0

SHORT = """
import time

class Short(Digits):
    def __init__(self, context):
        self.begin = time.perf_counter()
        super().__init__(context)

    def train_batch(self, batch, epoch_idx, batch_idx):
        time.sleep(0.03)
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch):
        return {"val_loss": time.perf_counter() - self.begin}

def search(trials):
    changes = {"searcher": {"name": "random", "max_trials": trials}, "resources": {"max_slots": 1}}
    return configuration(**changes, hyperparameters={"unused": {"type": "double", "minval": 0, "maxval": 1}})
"""
CREATE = "experiment = det.experimental.create(Short, search(settings['trials']))"


@pytest.mark.long
def test_a_short_trial_costs_little_more_than_its_own_work(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(SHORT)
    for trials in (1, TRIALS):
        number = kernel.submit_with(CREATE, trials=trials)
        kernel.run("experiment.wait()")
    experiment = cluster.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    details = [trial.detail() for trial in experiment.trials]
    ends = sorted(datetime.fromisoformat(one.ended) for one in details if one.ended)
    own = [one.best_validation for one in details if one.best_validation is not None]
    assert len(ends) == len(own) == TRIALS
    periods = [(after - before).total_seconds() for before, after in itertools.pairwise(ends)]
    cost = statistics.median(periods) - statistics.median(own)
    assert cost < LIMIT_SECONDS, f"periods {periods}, own {own}"
