"""The one disk of master and workers fails under them and is mounted anew: told, and over by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import PATIENCE, Cluster, Gate, assert_complete_rows, checkpoint_at, ended, running_kernel
from programs import BATCHES, TORCH_CELLS, TORCH_CREATE, TORCH_END
from small_disks import FailingDisk, failing_disk

from det_native.schema.home import Home, read_runtime
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with failing_disk(tmp_path / "failing", "256M") as mounted:
        yield mounted


@pytest.fixture
def failing_cluster(disk: FailingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster whose home is on that disk."""
    cluster = Cluster(tmp_path / "cluster")
    cluster.home = Home(disk.path / "home")
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    try:
        cluster.start("torch")
        yield cluster
    finally:
        cluster.take_down()


def test_the_master_goes_on_where_the_disk_is_mounted_and_the_trial_from_its_checkpoint(
    torch_end: Any, failing_cluster: Cluster, disk: FailingDisk, gate: Gate
) -> None:
    cluster = failing_cluster
    with running_kernel(cluster, "notebook", *TORCH_CELLS, TORCH_END) as kernel:
        experiment = cluster.attach(kernel.submit_with(TORCH_CREATE, stops="5", port=gate.port))
        visitor = gate.next()
        checkpoint_at(experiment, 3)
        runtime = read_runtime(cluster.home)
        assert runtime is not None
        disk.sync()
        disk.fail()
        visitor.go()
        deadline = time.monotonic() + PATIENCE
        while "the master cannot write to" not in (listed := cluster.det("experiment", "list")):
            assert time.monotonic() < deadline, listed
        assert "outage" in cluster.det("status")

        disk.mend()
        gate.next().go()  # the next run comes there again
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(experiment, BATCHES)
        assert kernel.end_of(experiment.id) == torch_end
        now = read_runtime(cluster.home)
        assert now is not None
        assert now.pid == runtime.pid
        assert "outage" not in cluster.det("status")
