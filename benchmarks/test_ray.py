"""Trials on the machines of a Ray cluster: the start of a gang, a submit, and a search beside Ray Tune's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_parts import EACH, TESTS, RayCluster, TimedGangs, cluster_of_two, until

from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.local_run import OUTPUT_NAME
from det_native.master.launch.ray.launcher import RayLauncher
from det_native.schema.home import Home
from det_native.schema.ranks import rank_folder

BUSY = "; machine busy with other work"


@pytest.fixture(scope="module")
def bare_cluster() -> Iterator[RayCluster]:
    """Give a cluster whose workers run a function of the tests, no framework."""
    with cluster_of_two() as cluster:
        yield cluster


@pytest.fixture
def local_gangs(tmp_path: Path) -> Iterator[TimedGangs]:
    """Give gangs on this machine."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    launcher = LocalLauncher(
        tmp_path / "standbys", slots=EACH, entry="launch_entries:run", environment=environment, threads=1
    )
    yield TimedGangs(launcher, tmp_path / "local")
    launcher.close(kill_workers=True)


@pytest.fixture
def ray_gangs(bare_cluster: RayCluster, tmp_path: Path) -> Iterator[tuple[TimedGangs, RayLauncher]]:
    """Give gangs on a machine each, and their launcher."""
    home = Home(tmp_path / "home")
    runs = home.path / "runs"
    runs.mkdir(parents=True)
    launcher = RayLauncher(home, "unix:/nowhere/master.sock", bare_cluster.address, threads=1)
    try:
        until(lambda: (launcher.poll(), len(launcher.slots()) == 2 * EACH)[1], launcher)
        agents = bare_cluster.folder / "home/.cache/det_native/agents" / launcher._identity.namespace
        folders = [agents / node.id[:16] / "runs" for node in launcher.nodes()]

        def outputs(run_id: str) -> list[Path]:
            return [rank_folder(folder / run_id, rank) / OUTPUT_NAME for rank, folder in enumerate(folders)]

        yield TimedGangs(launcher, runs, outputs, standbys=4), launcher
    finally:
        launcher.close(kill_workers=True)


def test_start_of_a_gang(paired: Any, local_gangs: TimedGangs, ray_gangs: tuple[TimedGangs, RayLauncher]) -> None:
    gangs, launcher = ray_gangs
    slots = tuple(f"{node.name}/0" for node in launcher.nodes())

    def pair() -> tuple[float, float]:
        local_gangs.settle()
        local = local_gangs.start(())
        gangs.settle()
        return gangs.start(slots), local

    for _ in range(3):
        pair()
    what = "start of a gang of 2 on two nodes, until both have written a line, over the same on this machine"
    paired.of(what + BUSY, [pair() for _ in range(22)], goal=1.5)
