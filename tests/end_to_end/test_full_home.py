"""The one disk of master and workers is full, and with it database, reports, output: nothing of a training is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import (
    PATIENCE,
    Cluster,
    Gate,
    Kernel,
    assert_complete_rows,
    checkpoint_at,
    ended,
    running_cluster,
    running_kernel,
)
from programs import BATCHES, TORCH_CELLS, TORCH_CREATE, TORCH_END
from small_disks import SmallDisk, small_disk

from det_native.client.handles import Experiment
from det_native.errors import RequestError
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

# Its checkpoints are larger than what the master keeps in reserve, and it prints.
LOUD = TORCH_CREATE.replace("Digits", "Loud")
CLASS = """
class Loud(Digits):
    def __init__(self, context):
        super().__init__(context)
        self.model.register_buffer("ballast", torch.zeros(1_500_000))

    def train_batch(self, batch, epoch_idx, batch_idx):
        print("batch", batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

END = TORCH_END.replace(".values()", "\n    values = [value for name, value in values.items() if name != 'ballast']", 1)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "128m") as mounted:
        yield mounted


@pytest.fixture
def small_cluster(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster all of which lies on that disk."""
    with running_cluster(disk.path / "cluster", "torch") as cluster:
        monkeypatch.setenv("DET_HOME", str(cluster.home.path))
        yield cluster


@pytest.fixture
def small_kernel(small_cluster: Cluster) -> Iterator[Kernel]:
    with running_kernel(small_cluster, "notebook", *TORCH_CELLS, CLASS, END) as kernel:
        yield kernel


# Of the training's five checkpoints three fit on that disk.
ELSEWHERE = """
storage = {{"type": "shared_fs", "host_path": {path!r}}}
experiment = det.experimental.create(Loud, configuration(hyperparameters=settings, checkpoint_storage=storage))
"""


@pytest.mark.soak
def test_no_trial_waits_for_the_room_of_its_own_superfluous_checkpoints(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    kernel.run(CLASS)
    kernel.run(END)
    with small_disk(tmp_path / "small", "20m") as storage:
        created = kernel.submit_with(ELSEWHERE.format(path=str(storage.path)), stops="3", port=gate.port)
        experiment = cluster.attach(created)
        gate.next().go()
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(experiment, BATCHES)
        assert 4 * experiment.checkpoints[-1].size > 20 << 20
        assert kernel.end_of(experiment.id) == torch_end


def _until_it_waits(experiment: Experiment) -> str:
    """Wait until the trial says so."""
    deadline = time.monotonic() + PATIENCE
    while "waits for disk space" not in (notice := experiment.trials[0].detail().notice):
        assert time.monotonic() < deadline, experiment.trials[0].detail()
        time.sleep(0.02)
    return notice


@pytest.mark.long
def test_nothing_is_lost_and_what_is_asked_for_is_done(
    small_kernel: Kernel, torch_end: Any, small_cluster: Cluster, disk: SmallDisk, gate: Gate
) -> None:
    experiment = small_cluster.attach(small_kernel.submit_with(LOUD, stops="5", port=gate.port))
    visitor = gate.next()
    checkpoint_at(experiment, 3)
    disk.fill()
    visitor.go()
    said = _until_it_waits(experiment)
    assert str(disk.path) in said
    deadline = time.monotonic() + PATIENCE
    while "waits for disk space" not in (listed := small_cluster.det("experiment", "list")):
        assert time.monotonic() < deadline, listed  # between two tries it is not waiting
    disk.empty()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert small_kernel.end_of(experiment.id) == torch_end

    killed = small_cluster.attach(small_kernel.submit_with(LOUD, stops="2", port=gate.port))
    visitor = gate.next()
    worker = psutil.Process(visitor.pid)
    disk.fill()
    visitor.go()
    _until_it_waits(killed)
    disk.fill()
    begun = time.monotonic()
    told = ""
    try:
        killed.kill()
    except RequestError as error:  # not even its reserve is left
        told = str(error)
    assert not told or "are ended now, and it is recorded as stopped as soon as there is room" in told
    assert time.monotonic() - begun < 5
    worker.wait(timeout=PATIENCE)
    disk.empty()
    ended(killed, ExperimentState.CANCELED)
