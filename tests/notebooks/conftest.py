"""A master for all notebooks of a process, and what they run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / "end_to_end"), str(_TESTS / "journeys")]

pytest.register_assert_rewrite("notebook_run")

from faults import Cluster  # noqa: E402 (a folder of tests is no package)
from notebook_run import Kernels  # noqa: E402


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master, on which nothing is warm before the first notebook."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture(scope="session")
def torch_kernels(cluster: Cluster) -> Iterator[Kernels]:
    """Kernels for PyTorch."""
    kernels = Kernels(cluster, "torch.utils.data")
    yield kernels
    kernels.close()


@pytest.fixture(scope="session")
def loop_kernels(cluster: Cluster) -> Iterator[Kernels]:
    """Kernels for loops in PyTorch, which set all seeds themselves."""
    kernels = Kernels(cluster, "torch.utils.data", "sklearn.datasets", "sklearn.model_selection", "matplotlib.pyplot")
    yield kernels
    kernels.close()


@pytest.fixture(scope="session")
def keras_kernels(cluster: Cluster) -> Iterator[Kernels]:
    """Kernels for Keras, of the generation that this Python has."""
    kernels = Kernels(cluster, "tensorflow", "keras")
    yield kernels
    kernels.close()
