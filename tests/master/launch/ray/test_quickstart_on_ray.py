"""The quickstart notebook, unchanged, by a master of a Ray cluster that only ``DET_MASTER`` names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from ray_cluster import RayCluster

from det_native.schema.home import Home

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

QUICKSTART = Path(__file__).parents[4] / "notebooks" / "01_quickstart.ipynb"


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """Give a cluster of two machines, which train."""
    running = RayCluster(1, DET_AGENT_ENTRY="det_harness.worker.job:run_job")
    try:
        running.add_node(1)
        yield running
    finally:
        running.stop()


def _det(home: Path, cluster: RayCluster, *arguments: str) -> str:
    environment = {
        **os.environ,
        **{name: value for name, value in cluster.environment.items() if name.startswith("RAY_")},
        "DET_HOME": str(home),
    }
    command = [sys.executable, "-m", "det_native.client.command", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_quickstart_trains_on_the_cluster_as_it_is(cluster: RayCluster, tmp_path: Path) -> None:
    home = tmp_path / "cluster"
    try:
        said = _det(home, cluster, "up", "--launcher", "ray", "--ray-address", cluster.address)
        assert "Its cluster has 2 machines with 2 slots" in said
        document = nbformat.read(QUICKSTART, 4)
        client = NotebookClient(
            document, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        )
        client.execute(
            env=os.environ
            | {
                "DET_HOME": str(tmp_path / "laptop"),
                "DET_MASTER": f"unix:{home / 'master.sock'}",
                "DET_TOKEN": (home / "token").read_text().strip(),
                "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            }
        )
        rows = _det(home, cluster, "experiment", "list", "--all").splitlines()[1:]
        assert rows
        assert all("Completed" in row for row in rows)
        assert not Home(tmp_path / "laptop").socket.exists(), "no master is started beside it"
    finally:
        _det(home, cluster, "down", "--kill")
