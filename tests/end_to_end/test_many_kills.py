"""Masters and workers are killed again and again, at random: every training ends as if nothing had happened.

``DET_SOAK_KILLS`` says how often (200 by default), ``DET_SOAK_SEED`` repeats a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import Any

import psutil
import pytest
from faults import PATIENCE, Cluster, Kernel, assert_complete_rows, ended

from det_native.client.handles import Experiment
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(12 * 3600)]

BATCHES = 60
KILLS = int(os.environ.get("DET_SOAK_KILLS", "200"))

# Batches that take their time, so that kills find a worker in the middle of them.
LASTING = """
class Lasting(Ranked):
    def visit(self, batch_idx):
        time.sleep(self.context.get_hparam("seconds"))
"""

CREATE = """
experiment = det.experimental.create(
    {name},
    configuration(
        hyperparameters=settings,
        searcher={{"max_length": {{"epochs": 12}}}},
        resources={{"slots_per_trial": {slots}}},
        max_restarts=1000,
    ),
)
"""

# One trial on a slot, and one on two, which share the two slots one after the other or at the same time.
CALLS = (CREATE.format(name="Lasting", slots=1), CREATE.format(name="Lasting", slots=2))


def _workers(cluster: Cluster) -> list[psutil.Process]:
    """Return the processes that work at a run."""
    found = []
    for process in cluster.processes():
        with contextlib.suppress(psutil.Error):
            if process.cwd().startswith(str(cluster.home.path / "runs")):
                found.append(process)
    return found


def _kill_worker(cluster: Cluster, choice: random.Random) -> bool:
    """Kill a random worker; return whether there was one."""
    workers = _workers(cluster)
    if workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            choice.choice(workers).kill()
    return bool(workers)


def _kill_master(cluster: Cluster, choice: random.Random) -> None:
    """Kill the master and, after a while, start it again."""
    master = cluster.master
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)
    time.sleep(choice.uniform(0, 1))
    cluster.start()


def test_every_training_ends_the_same(kernel: Kernel, cluster: Cluster) -> None:
    seed = int(os.environ.get("DET_SOAK_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_SOAK_SEED={seed}")  # shown where the test fails
    choice = random.Random(seed)
    kernel.run(LASTING)

    def submit(call: str) -> Experiment:
        return cluster.attach(kernel.submit_with(call, seconds=0.05))

    expected: dict[str, Any] = {}
    for call in CALLS:
        undisturbed = submit(call)
        ended(undisturbed, ExperimentState.COMPLETED)
        expected[call] = kernel.end_of(undisturbed.id)

    done = 0
    while done < KILLS:
        running = {call: submit(call) for call in CALLS}
        workers_killed = 0
        while done < KILLS and not all(experiment.state.terminal for experiment in running.values()):
            time.sleep(choice.uniform(0, 4))  # kills come whenever they come
            if choice.random() < 0.3:
                _kill_master(cluster, choice)
                done += 1
            elif _kill_worker(cluster, choice):
                workers_killed += 1
                done += 1
        for call, experiment in running.items():
            # A kill that comes after a worker's last word costs nothing; that of a master never does.
            assert ended(experiment, ExperimentState.COMPLETED).restarts <= workers_killed
            assert_complete_rows(experiment, BATCHES)
            assert kernel.end_of(experiment.id) == expected[call], f"seed {seed}, experiment {experiment.id}"
