"""A master for the notebooks of a process; each notebook has fresh kernels, as the imports of its first cell count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / "end_to_end"), str(_TESTS / "journeys")]

from faults import running_cluster  # noqa: E402 (a folder of tests is no package)
from notebook_run import Kernels  # noqa: E402


@pytest.fixture(scope="session")
def torch_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernels]:
    """Kernels for PyTorch, and a master with standbys of it."""
    yield from _kernels(tmp_path_factory.mktemp("torch-cluster"), "torch", "torch.utils.data")


@pytest.fixture(scope="session")
def keras_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernels]:
    """Kernels for Keras, and a master with standbys of it."""
    yield from _kernels(tmp_path_factory.mktemp("keras-cluster"), "keras", "tensorflow", "keras")


def _kernels(folder: Path, framework: str, *libraries: str) -> Iterator[Kernels]:
    with running_cluster(folder, framework) as cluster:
        kernels = Kernels(cluster, *libraries)
        yield kernels
        kernels.close()
