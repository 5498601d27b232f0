"""The master is killed at drawn moments of a search: no trial is lost, none is run twice, and no row is missing.

``DET_SOAK_KILLS`` says how often in the soak (200 by default), ``DET_SOAK_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import signal
import time
from itertools import pairwise

import pytest
from faults import PATIENCE, Cluster, Kernel, ended
from recovery import Recovery
from tries import counted, drawn_seed

from det_native.client.handles import Experiment
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState, TrialState

pytestmark = [pytest.mark.slow]

SOAK_KILLS = int(os.environ.get("DET_SOAK_KILLS", "200"))

NOT_BEGUN = "The master ended before the worker had begun."
SEARCHED = """
class Paced(Digits):
    def visit(self, batch_idx):
        time.sleep(0.05)

    def evaluate_batch(self, batch):
        return {"error": self.context.get_hparam("x")}

search = configuration(
    searcher={"name": "async_halving", "metric": "error", "max_length": {"batches": 16}, "divisor": 2, "num_rungs": 3,
              "max_trials": 8, "max_concurrent_trials": 3},
    hyperparameters={"x": {"type": "double", "minval": 0, "maxval": 1}},
    min_validation_period={"batches": 0},
    max_restarts=0,
)
"""


def _kill_in_searches(kernel: Kernel, cluster: Cluster, kills: int) -> None:
    kernel.run(SEARCHED)
    seed = drawn_seed()
    choice = random.Random(seed)
    with counted("masters killed in searches", seed) as tries:
        while tries.tried < kills:
            experiment = cluster.attach(kernel.submit("experiment = det.experimental.create(Paced, search)"))
            with Recovery([experiment]) as recovery:
                while tries.tried < kills and not experiment.state.terminal:
                    time.sleep(choice.uniform(0, 2))  # a kill comes whenever it comes
                    master, killed = cluster.master, time.monotonic()
                    os.kill(master.pid, signal.SIGKILL)
                    assert wait_until_gone(master.pid, master.start, PATIENCE)
                    cluster.start()
                    recovery.master_killed(killed)
                    tries.tried += 1
            ended(experiment, ExperimentState.COMPLETED)
            _check(experiment)
            tries.survived = tries.tried
            tries.seconds += recovery.of_masters
            print(f"{tries.tried} kills")
        assert tries.seconds, "no kill was followed by a report"


def _check(experiment: Experiment) -> None:
    trials = [trial.detail() for trial in experiment.trials]
    assert len(trials) == 8
    assert len({trial.hparams["x"] for trial in trials}) == 8
    for handle, trial in zip(experiment.trials, trials, strict=True):
        assert trial.state is TrialState.COMPLETED
        assert trial.restarts == 0
        assert trial.batches == trial.target_batches == trial.stages[-1]
        assert [row["batch"] for row in handle.metrics("training")] == list(range(1, trial.batches + 1))
        assert [row["batch"] for row in handle.metrics("validation")] == trial.stages
        lines = [line.text for line in handle.logs()]
        attempts = [text for text in lines if text.startswith("Attempt ") or NOT_BEGUN in text]
        # One that was placed as the master was killed may have got no job, and is made once more: nothing runs twice.
        in_vain = sum("from checkpoint" in one and NOT_BEGUN in other for one, other in pairwise(attempts))
        assert sum("from checkpoint" in text for text in attempts) - in_vain == len(trial.stages) - 1, attempts
    assert any(len(trial.stages) > 1 for trial in trials)


@pytest.mark.long
def test_five_kills(kernel: Kernel, cluster: Cluster) -> None:
    _kill_in_searches(kernel, cluster, 5)


@pytest.mark.soak
@pytest.mark.timeout(12 * 3600)
def test_very_many_kills(kernel: Kernel, cluster: Cluster) -> None:
    _kill_in_searches(kernel, cluster, SOAK_KILLS)
