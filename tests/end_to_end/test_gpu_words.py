"""What a user is told of GPUs: which ones a trial trains on, and at submit that another process fills one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpus import make_driver
from faults import Cluster, Kernel, ended, running_kernel
from installed_toy import install_toy

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long]

CELL = """
import det_native as det
from toy_framework.trial import ToyTrial

configuration = {
    "hyperparameters": {"global_batch_size": 1},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 1}},
    "scheduling_unit": 1,
}
"""
CREATE = "experiment = det.experimental.create(ToyTrial, configuration)"


class GpuCluster(Cluster):
    """A cluster on a machine with one GPU, of which this process holds 60 of 80 GB."""

    def __init__(self, folder: Path, driver: Path, packages: Path) -> None:
        super().__init__(folder, slots="1")
        self.driver, self.packages = driver, packages

    @property
    def environment(self) -> dict[str, str]:
        """Where kernel and master find the driver."""
        variables = super().environment
        variables.pop("CUDA_VISIBLE_DEVICES", None)
        return variables | {
            "LD_LIBRARY_PATH": str(self.driver),
            "PATH": f"{self.driver}:{variables['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(self.packages), variables.get("PYTHONPATH", "")]).rstrip(":"),
            "FAKE_NVML_USED": "60000000000",
            "FAKE_NVML_PID": str(os.getpid()),
        }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuCluster]:
    """The cluster, with a master."""
    packages = install_toy(tmp_path_factory.mktemp("toy"))
    driver = make_driver(tmp_path_factory.mktemp("driver"))
    cluster = GpuCluster(tmp_path_factory.mktemp("gpus"), driver, packages)
    try:
        cluster.start("toy")
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture(scope="module")
def kernel(cluster: GpuCluster) -> Iterator[Kernel]:
    with running_kernel(cluster, "notebook", CELL) as opened:
        yield opened


def test_a_gpu_that_another_process_fills_is_said_at_submit(
    cluster: GpuCluster, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    begun = kernel.begin(CREATE)
    kernel.shows(begun, f"other processes ({os.getpid()} ")
    kernel.finish(begun)
    experiment = cluster.attach(kernel.value("experiment.id"))
    ended(experiment, ExperimentState.COMPLETED)
    assert experiment.source.experiment(experiment.id).devices == {"cuda:0": "Fake H100 (80.0 GB)"}
