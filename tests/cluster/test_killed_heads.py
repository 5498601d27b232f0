"""The head of a cluster is killed and comes back at the same address, with what it knew, or without."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES
from ray_cluster import RayCluster, free_port
from rig import RayMaster, cluster_of, end_of, let_go, log_of, only_trial, submit, until, visitors

from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(600)]


def test_without_redis_trainings_begin_again_from_their_checkpoints(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any
) -> None:
    experiment = submit(master, kernel, stops="8", port=gate.port)
    both = visitors(gate)
    checkpoint_at(experiment, 6)
    for node in list(ray.nodes):  # machines whose head knows nothing of them are not of the cluster any more
        ray.kill_node(node)
    until(lambda: master.info.outage)
    let_go(both)
    master.made_whole()
    let_go(visitors(gate))
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert end_of(kernel, experiment) == undisturbed_end
    told = log_of(experiment)
    assert "the head of the cluster was restarted. The trial goes on elsewhere; no restart is counted." in told
    assert "at batch 6." in told


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """Give the address of a Redis."""
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("no redis-server: a head that knows its cluster again is not tried (apt-get install redis-server)")
    port = free_port()
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen([server, *arguments], stdout=subprocess.DEVNULL)
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait()


@pytest.mark.soak
def test_with_redis_machines_train_on(redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    with cluster_of(tmp_path, head_slots=0, redis=redis) as (ray, master, kernel):
        monkeypatch.setenv("DET_HOME", str(master.home.path))
        experiment = submit(master, kernel, stops="8 13", port=gate.port)
        both = visitors(gate)
        run = only_trial(experiment).run_id
        ray.kill_node(ray.head)
        let_go(both)
        ray.start_head()
        again = visitors(gate)
        assert {visitor.pid for visitor in again.values()} == {visitor.pid for visitor in both.values()}
        let_go(again)
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert only_trial(experiment).run_id == run
        assert_complete_rows(experiment, BATCHES)
