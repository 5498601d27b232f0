"""Trials on the machines of a Ray cluster: the start of a gang, a submit, and a search beside Ray Tune's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from notebook_kernel import Kernel, running_kernel
from ray_parts import EACH, TESTS, RayCluster, TimedGangs, cluster_of_two, until
from test_submit import _DEFINITION, _SAME_WORK, _SUBMIT, _wait_for_standby

from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.local_run import OUTPUT_NAME
from det_native.master.launch.ray.launcher import RayLauncher
from det_native.schema.home import Home
from det_native.schema.ranks import rank_folder

BUSY = "; machine busy with other work"


@pytest.fixture(scope="module")
def bare_cluster() -> Iterator[RayCluster]:
    """Give a cluster whose workers run a function of the tests, no framework."""
    with cluster_of_two() as cluster:
        yield cluster


@pytest.fixture
def local_gangs(tmp_path: Path) -> Iterator[TimedGangs]:
    """Give gangs on this machine."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    launcher = LocalLauncher(
        tmp_path / "standbys", slots=EACH, entry="launch_entries:run", environment=environment, threads=1
    )
    yield TimedGangs(launcher, tmp_path / "local")
    launcher.close(kill_workers=True)


@pytest.fixture
def ray_gangs(bare_cluster: RayCluster, tmp_path: Path) -> Iterator[tuple[TimedGangs, RayLauncher]]:
    """Give gangs on a machine each, and their launcher."""
    home = Home(tmp_path / "home")
    runs = home.path / "runs"
    runs.mkdir(parents=True)
    launcher = RayLauncher(home, "unix:/nowhere/master.sock", bare_cluster.address, threads=1)
    try:
        until(lambda: (launcher.poll(), len(launcher.slots()) == 2 * EACH)[1], launcher)
        agents = bare_cluster.folder / "home/.cache/det_native/agents" / launcher._identity.namespace
        folders = [agents / node.id[:16] / "runs" for node in launcher.nodes()]

        def outputs(run_id: str) -> list[Path]:
            return [rank_folder(folder / run_id, rank) / OUTPUT_NAME for rank, folder in enumerate(folders)]

        yield TimedGangs(launcher, runs, outputs, standbys=4), launcher
    finally:
        launcher.close(kill_workers=True)


def test_start_of_a_gang(paired: Any, local_gangs: TimedGangs, ray_gangs: tuple[TimedGangs, RayLauncher]) -> None:
    gangs, launcher = ray_gangs
    slots = tuple(f"{node.name}/0" for node in launcher.nodes())

    def pair() -> tuple[float, float]:
        local_gangs.settle()
        local = local_gangs.start(())
        gangs.settle()
        return gangs.start(slots), local

    for _ in range(3):
        pair()
    what = "start of a gang of 2 on two nodes, until both have written a line, over the same on this machine"
    paired.of(what + BUSY, [pair() for _ in range(22)], goal=1.5)


_TRIALS = 50

_SEARCH = """
import time
import torch
from torch import nn
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class TwoSeconds(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Linear(64, 10))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("rate"))
        self.optimizer = context.wrap_optimizer(optimizer)

    def _loader(self, count):
        data = torch.utils.data.TensorDataset(torch.zeros(count, 64), torch.zeros(count, dtype=torch.long))
        return DataLoader(data, batch_size=32)

    def build_training_data_loader(self):
        return self._loader(320)

    def build_validation_data_loader(self):
        return self._loader(32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        time.sleep(0.2)
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"val_loss": nn.functional.cross_entropy(self.model(batch[0]), batch[1])}

def searched(trials):
    begin = time.perf_counter()
    experiment = det.experimental.create(TwoSeconds, {
        "hyperparameters": {"global_batch_size": 32, "rate": {"type": "double", "minval": 0.001, "maxval": 0.1}},
        "searcher": {"name": "random", "metric": "val_loss", "max_trials": trials, "max_length": {"batches": 10}},
    })
    experiment.wait()
    seconds = time.perf_counter() - begin
    assert [trial.state for trial in experiment.trials] == ["Completed"] * trials, experiment.trials
    return seconds
"""


@pytest.fixture(scope="module")
def training_cluster() -> Iterator[RayCluster]:
    """Give a cluster whose workers train, and which starts processes beforehand as Ray does by default."""
    with cluster_of_two(DET_AGENT_ENTRY="det_harness.worker.job:run_job", RAY_enable_worker_prestart="1") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster_kernel(training_cluster: RayCluster, master_home: Path) -> Iterator[Kernel]:
    """Give a kernel whose master has the machines of the cluster."""
    command = [sys.executable, "-m", "det_native.client.command", "up", "--launcher", "ray"]
    subprocess.run([*command, "--ray-address", training_cluster.address, "--ray-trusted"], check=True)
    with running_kernel(master_home) as running:
        running.run(
            "import time\nfrom det_native.client.connect import connect\nfrom det_native.schema import routes\n"
            f"while len(connect().call(routes.GET_MASTER).slots) < {2 * EACH}:\n    time.sleep(0.1)"
        )
        yield running


@pytest.mark.timeout(900)
def test_submit_to_first_metric(paired: Any, cluster_kernel: Kernel) -> None:
    cluster_kernel.run(_DEFINITION)
    cluster_kernel.run(_SUBMIT)

    def settle() -> None:
        cluster_kernel.run("experiment.wait()")
        _wait_for_standby(cluster_kernel)

    paired(
        "submit to first metric in the notebook, on two nodes of Ray, over a fresh process with the same work" + BUSY,
        lambda: float(cluster_kernel.run(_SUBMIT, "seconds")),
        lambda: subprocess.run([sys.executable, "-c", _SAME_WORK], check=True),
        goal=0.3,
        before=settle,
        value=lambda result, seconds: result if isinstance(result, float) else seconds,
    )


@pytest.mark.timeout(5400)
def test_search_beside_tune(paired: Any, cluster_kernel: Kernel, training_cluster: RayCluster) -> None:
    cluster_kernel.run(_SEARCH)
    cluster_kernel.run("searched(4)")

    def tune() -> float:
        command = [sys.executable, str(Path(__file__).with_name("tune_peer.py")), training_cluster.address]
        environment = {**training_cluster.environment, "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
        found = subprocess.run([*command, str(_TRIALS)], env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return float(found.stdout.split()[-1])

    pairs = []
    for _ in range(3):
        theirs = tune()
        pairs.append((float(cluster_kernel.run(f"seconds = searched({_TRIALS})", "seconds")), theirs))
    what = f"{_TRIALS} trials of 2 s on 4 slots of two nodes of Ray, over Ray Tune's random search there"
    paired.of(what + BUSY, pairs, goal=0.8)
