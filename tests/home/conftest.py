"""Notebooks for the tests of training calls that wait: real kernels on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / "capture"), str(_TESTS / "end_to_end"), str(_TESTS / "journeys")]

from faults import GATE_CELL, Cluster, Gate, Kernel, running_kernel  # noqa: E402 (a folder of tests is no package)
from in_process import ShellKernel  # noqa: E402
from torch_program import CONFIG, TORCH  # noqa: E402


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellKernel]:
    """IPython's shell, in processes that have PyTorch."""
    kernel = ShellKernel(tmp_path_factory.mktemp("notebook"), tmp_path_factory.mktemp("shared"))
    yield kernel
    kernel.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.take_down()


@pytest.fixture(scope="session")
def torch_kernel(cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the program in PyTorch."""
    with running_kernel(cluster, "torch", GATE_CELL, TORCH) as kernel:
        yield kernel


@pytest.fixture
def kernel(torch_kernel: Kernel) -> Iterator[Kernel]:
    """The same, with the configuration as it was; it has nothing to do, and lives after the test, too."""
    torch_kernel.run(CONFIG)
    yield torch_kernel
    torch_kernel.clear()
    assert torch_kernel.run("1 + 1").text == "2"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
