"""Machines, heads, agents, workers, bridges and masters are killed at random under a search: every trial ends the same.

``DET_SOAK_CLUSTER_KILLS`` says how often in the soak (20 by default), ``DET_SOAK_SEED`` repeats a run.
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
from faults import PATIENCE, Kernel, ended
from ray_cluster import RayCluster
from rig import RayMaster, line_of
from tries import counted, drawn_seed

from det_native.client.handles import Experiment
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow]

FEW_KILLS = 3
SOAK_KILLS = int(os.environ.get("DET_SOAK_CLUSTER_KILLS", "20"))
KINDS = ("machine", "agent", "worker", "bridge", "master", "head")
TRIALS = 6

LASTING = """
class Lasting(Ranked):
    def visit(self, batch_idx):
        time.sleep(0.2)

def ends_of(number):
    found = {}
    for trial in det.attach(number).trials:
        values = trial.checkpoints[-1].load().model.state_dict().values()
        rows = [trial.metrics(kind) for kind in ("training", "validation")]
        found[str(trial.hparams["width"])] = [[value.numpy().tobytes().hex() for value in values], *rows]
    return found
"""
CREATE = f"""
experiment = det.experimental.create(
    Lasting,
    configuration(
        hyperparameters=settings | {{"width": {{"type": "int", "minval": 1, "maxval": {TRIALS}}}}},
        searcher={{"name": "grid", "max_length": {{"epochs": 6}}}},
        resources={{"slots_per_trial": 1}},
        max_restarts=1000,
    ),
)
"""


def _kill(kind: str, master: RayMaster, ray: RayCluster, choice: random.Random) -> bool:
    """Kill something of a kind, and bring back what does not come back by itself; whether there was one."""
    if kind == "head":
        for node in list(ray.nodes):
            ray.kill_node(node)
        master.made_whole()
    elif kind == "machine":
        ray.kill_node(choice.choice([node for node in ray.nodes if node is not ray.head]))
        ray.add_node(1)
    elif kind == "master":
        before = master.master
        os.kill(before.pid, signal.SIGKILL)
        assert wait_until_gone(before.pid, before.start, PATIENCE)
        master.start()
    elif kind == "bridge":
        if (bridge := master.bridge) is None:
            return False
        bridge.kill()
    else:
        piece = "ray::NodeAgent" if kind == "agent" else "det_harness.worker.standby"
        found = [process for node in ray.nodes for process in node.processes() if piece in line_of(process)]
        if not found:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            choice.choice(found).kill()
    return True


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(FEW_KILLS, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
        pytest.param(SOAK_KILLS, marks=[pytest.mark.soak, pytest.mark.timeout(6 * 3600)]),
    ],
    ids=["few", "many"],
)
def test_every_trial_of_a_search_ends_the_same(master: RayMaster, ray: RayCluster, kernel: Kernel, kills: int) -> None:
    seed = drawn_seed()
    choice = random.Random(seed)
    kernel.run(LASTING)

    def submit() -> Experiment:
        return master.attach(kernel.submit_with(CREATE))

    def ends(experiment: Experiment) -> dict[str, Any]:
        ended(experiment, ExperimentState.COMPLETED)
        found: dict[str, Any] = kernel.value(f"ends_of({experiment.id})")
        assert len(found) == TRIALS
        return found

    expected = ends(submit())
    with counted("machines, agents, workers, bridges, masters and heads of a Ray cluster killed", seed) as tries:
        while tries.tried < kills:
            search = submit()
            while tries.tried < kills and not search.state.terminal:
                time.sleep(choice.uniform(0, 4))  # kills come whenever they come
                kind = choice.choice(KINDS)
                if _kill(kind, master, ray, choice):
                    tries.tried += 1
                    print(f"{tries.tried}: {kind}", flush=True)
            found = ends(search)
            wrong = [width for width in expected if found[width] != expected[width]]
            assert not wrong, f"seed {seed}, experiment {search.id}: the trials with the widths {wrong} differ"
            tries.survived = tries.tried
