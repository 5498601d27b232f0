"""Masters and workers are killed again and again, at random: every training ends as if nothing had happened.

``DET_SOAK_KILLS`` says how often (200 by default), ``DET_SOAK_SEED`` repeats a run.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import PATIENCE, Cluster, Kernel, assert_complete_rows, ended
from recovery import Recovery
from tries import counted, drawn_seed

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


def _kill_worker(cluster: Cluster, choice: random.Random, recovery: Recovery) -> bool:
    """Kill a random worker; return whether there was one."""
    workers = _workers(cluster)
    if workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker = choice.choice(workers)
            run = Path(worker.cwd()).relative_to(cluster.home.path / "runs").parts[0]
            recovery.worker_killed(run)
            worker.kill()
    return bool(workers)


def _kill_master(cluster: Cluster, choice: random.Random, recovery: Recovery) -> None:
    """Kill the master and, after a while, start it again."""
    master, killed = cluster.master, time.monotonic()
    os.kill(master.pid, signal.SIGKILL)
    assert wait_until_gone(master.pid, master.start, PATIENCE)
    time.sleep(choice.uniform(0, 1))
    cluster.start()
    recovery.master_killed(killed)


def test_every_training_ends_the_same(kernel: Kernel, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    # The seconds are those until a report is accepted, not until this process asks for it again.
    monkeypatch.setattr("det_native.client.events.LONGEST_PAUSE", 0.1)
    seed = drawn_seed()
    choice = random.Random(seed)
    kernel.run(LASTING)

    def submit(call: str) -> Experiment:
        return cluster.attach(kernel.submit_with(call, seconds=0.05))

    expected: dict[str, Any] = {}
    for call in CALLS:
        undisturbed = submit(call)
        ended(undisturbed, ExperimentState.COMPLETED)
        expected[call] = kernel.end_of(undisturbed.id)

    with counted("masters killed at random", seed) as masters, counted("workers killed at random", seed) as workers:
        while masters.tried + workers.tried < KILLS:
            running = {call: submit(call) for call in CALLS}
            workers_before = workers.tried
            with Recovery(running.values()) as recovery:
                while masters.tried + workers.tried < KILLS and not _over(running.values()):
                    time.sleep(choice.uniform(0, 4))  # kills come whenever they come
                    if choice.random() < 0.3:
                        _kill_master(cluster, choice, recovery)
                        masters.tried += 1
                    elif _kill_worker(cluster, choice, recovery):
                        workers.tried += 1
            for call, experiment in running.items():
                # A kill that comes after a worker's last word costs nothing; that of a master never does.
                assert ended(experiment, ExperimentState.COMPLETED).restarts <= workers.tried - workers_before
                assert_complete_rows(experiment, BATCHES)
                assert kernel.end_of(experiment.id) == expected[call], f"seed {seed}, experiment {experiment.id}"
            masters.survived, workers.survived = masters.tried, workers.tried
            masters.seconds += recovery.of_masters
            workers.seconds += recovery.of_workers
            print(f"{masters.tried} masters and {workers.tried} workers killed")


def _over(experiments: Iterable[Experiment]) -> bool:
    return all(experiment.state.terminal for experiment in experiments)
