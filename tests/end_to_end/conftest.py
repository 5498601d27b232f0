"""A master and a kernel of each framework for all tests of a process, as a user has them; a gate for each test.

They start with the first test that needs them. A test leaves nothing running on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_cluster, running_kernel
from programs import CONFIG, KERAS_CELLS, KERAS_FIT, NATIVE_SETUP, TORCH_CELLS, TORCH_CREATE, TORCH_END


@pytest.fixture(scope="session")
def torch_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with standbys of PyTorch."""
    with running_cluster(tmp_path_factory.mktemp("torch-cluster"), "torch") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def torch_kernel(torch_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the programs in PyTorch."""
    with running_kernel(torch_cluster, "notebook", *TORCH_CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="session")
def torch_end(torch_kernel: Kernel) -> Any:
    """What the training of `TORCH_CREATE` comes to if nobody disturbs it."""
    number = torch_kernel.submit_with(TORCH_CREATE)
    torch_kernel.run("experiment.wait()")
    return torch_kernel.end_of(number)


@pytest.fixture(scope="session")
def session_native_kernel(torch_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel for loops over ``context.train()``: a notebook does not mix them with trial classes."""
    with running_kernel(torch_cluster, "loops", NATIVE_SETUP, GATE_CELL, CONFIG, TORCH_END) as kernel:
        yield kernel


@pytest.fixture(scope="session")
def keras_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with standbys of Keras."""
    with running_cluster(tmp_path_factory.mktemp("keras-cluster"), "keras") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_keras_kernel(keras_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel with the program in Keras."""
    with running_kernel(keras_cluster, "notebook", *KERAS_CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="session")
def keras_end(session_keras_kernel: Kernel) -> Any:
    """What the training of `KERAS_FIT` comes to if nobody disturbs it."""
    number = session_keras_kernel.submit_with(KERAS_FIT)
    session_keras_kernel.run("experiment.wait()")
    return session_keras_kernel.end_of(number)


@pytest.fixture
def cluster(torch_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master for PyTorch, which is also the one that handles in this process find; nothing runs on it."""
    monkeypatch.setenv("DET_HOME", str(torch_cluster.home.path))
    with torch_cluster.clearing() as cleared:
        yield cleared


@pytest.fixture
def kernel(torch_kernel: Kernel, cluster: Cluster) -> Iterator[Kernel]:
    """The kernel for PyTorch, which has nothing to do."""
    yield torch_kernel
    torch_kernel.clear()


@pytest.fixture
def native_kernel(session_native_kernel: Kernel, cluster: Cluster) -> Iterator[Kernel]:
    """The kernel for loops, which has nothing to do."""
    yield session_native_kernel
    session_native_kernel.clear()


@pytest.fixture
def keras_kernel(
    session_keras_kernel: Kernel, keras_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kernel]:
    """The kernel for Keras, which has nothing to do; handles in this process find its master."""
    monkeypatch.setenv("DET_HOME", str(keras_cluster.home.path))
    with keras_cluster.clearing():
        yield session_keras_kernel
    session_keras_kernel.clear()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
