"""A Ray cluster of three machines with a slot each, a master on it and a kernel, for all tests of a process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / place) for place in ("end_to_end", "master/launch", "master/launch/ray")]

from faults import Gate, Kernel, ended  # noqa: E402 (a folder of tests is no package)
from ray_cluster import RayCluster  # noqa: E402
from rig import RayMaster, cluster_of, end_of, submit  # noqa: E402

from det_native.schema.states import ExperimentState  # noqa: E402

#: Whoever takes a machine away gives it so long. It ends as soon as nothing runs there.
DRAIN_SECONDS = "100"


@pytest.fixture(scope="session")
def session_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RayCluster, RayMaster, Kernel]]:
    """All of it."""
    drain = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": DRAIN_SECONDS}
    with cluster_of(tmp_path_factory.mktemp("ray"), **drain) as made:
        yield made


@pytest.fixture(scope="session")
def session_master(session_cluster: tuple[RayCluster, RayMaster, Kernel]) -> RayMaster:
    """The master."""
    return session_cluster[1]


@pytest.fixture(scope="session")
def session_kernel(session_cluster: tuple[RayCluster, RayMaster, Kernel]) -> Kernel:
    """The kernel."""
    return session_cluster[2]


@pytest.fixture(scope="session")
def undisturbed_end(session_kernel: Kernel, session_master: RayMaster) -> Any:
    """What the training comes to if nobody disturbs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(session_master.home.path))
        session_master.made_whole()
        experiment = submit(session_master, session_kernel)
        ended(experiment, ExperimentState.COMPLETED)
        return end_of(session_kernel, experiment)


@pytest.fixture
def master(session_master: RayMaster, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayMaster]:
    """The master, on a whole cluster on which nothing runs."""
    monkeypatch.setenv("DET_HOME", str(session_master.home.path))
    session_master.made_whole()
    with session_master.clearing():
        yield session_master


@pytest.fixture
def kernel(session_kernel: Kernel, master: RayMaster) -> Iterator[Kernel]:
    """The kernel, which has nothing to do."""
    yield session_kernel
    session_kernel.clear()


@pytest.fixture
def ray(session_master: RayMaster) -> RayCluster:
    """The cluster."""
    return session_master.ray


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
