"""A master and a kernel for loops of any framework."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[2] / "end_to_end")]

from faults import GATE_CELL, Cluster, Gate, Kernel, running_cluster, running_kernel


@pytest.fixture(scope="session")
def session_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master."""
    with running_cluster(tmp_path_factory.mktemp("loops-cluster"), "core") as cluster:
        yield cluster


@pytest.fixture
def cluster(session_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master, which is also the one that handles in this process find; nothing runs on it."""
    monkeypatch.setenv("DET_HOME", str(session_cluster.home.path))
    with session_cluster.clearing() as cleared:
        yield cleared


@pytest.fixture
def kernel(cluster: Cluster, tmp_path: Path) -> Iterator[Kernel]:
    """A new kernel."""
    with running_kernel(cluster, str(tmp_path / "notebook"), GATE_CELL, "import det_native as det") as kernel:
        yield kernel


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
