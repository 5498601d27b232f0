"""A Ray cluster of three machines with a slot each, a master on it and a kernel, for all tests of a process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS / place) for place in ("end_to_end", "master/launch", "master/launch/ray")]

from faults import Gate, Kernel, ended, running_kernel  # noqa: E402 (a folder of tests is no package)
from ray_cluster import RayCluster  # noqa: E402
from rig import CELLS, ENTRY, MACHINES, RayMaster, end_of, submit  # noqa: E402

from det_native.schema.states import ExperimentState  # noqa: E402

#: Whoever takes a machine away gives it so long.
DRAIN_SECONDS = "20"


@pytest.fixture(scope="session")
def session_ray() -> Iterator[RayCluster]:
    """The cluster."""
    ray = RayCluster(
        1,
        DET_AGENT_ENTRY=ENTRY,
        RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=DRAIN_SECONDS,
    )
    try:
        for _ in range(MACHINES - 1):
            ray.add_node(1)
        yield ray
    finally:
        ray.stop()


@pytest.fixture(scope="session")
def session_master(session_ray: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayMaster]:
    """The master."""
    master = RayMaster(tmp_path_factory.mktemp("ray-master"), session_ray)
    try:
        master.start("torch")
        yield master
    finally:
        master.take_down()


@pytest.fixture(scope="session")
def session_kernel(session_master: RayMaster) -> Iterator[Kernel]:
    """The kernel."""
    with running_kernel(session_master, "notebook", *CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="session")
def undisturbed_end(session_kernel: Kernel, session_master: RayMaster) -> Any:
    """What the training comes to if nobody disturbs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(session_master.home.path))
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
def ray(session_ray: RayCluster) -> RayCluster:
    """The cluster."""
    return session_ray


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()
