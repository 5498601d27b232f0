"""A master and a kernel for each module, as a user has them; a gate for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import Cluster, Gate, Kernel, running_cluster


@pytest.fixture(scope="module")
def framework(request: pytest.FixtureRequest) -> str:
    """What the module trains with: its ``FRAMEWORK``."""
    name: str = getattr(request.module, "FRAMEWORK", "torch")
    return name


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory, framework: str) -> Iterator[Cluster]:
    """The module's master."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), framework) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def module_kernel(module_cluster: Cluster) -> Iterator[Kernel]:
    """The module's kernel."""
    kernel = Kernel(module_cluster, module_cluster.folder / "notebook")
    yield kernel
    kernel.close()


@pytest.fixture
def cluster(module_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The module's master, which is also the one that handles in this process find; nothing runs on it."""
    monkeypatch.setenv("DET_HOME", str(module_cluster.home.path))
    with module_cluster.clearing() as cleared:
        yield cleared


@pytest.fixture
def kernel(module_kernel: Kernel, cluster: Cluster) -> Iterator[Kernel]:
    """The module's kernel, which has nothing to do."""
    yield module_kernel
    module_kernel.clear()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
