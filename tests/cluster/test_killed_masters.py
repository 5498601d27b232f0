"""The master on a cluster, or its bridge, is killed while a training goes on: its processes are found again."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from faults import PATIENCE, Gate, Kernel, assert_complete_rows, ended
from programs import BATCHES
from ray_cluster import RayCluster
from rig import RayMaster, end_of, let_go, log_of, only_trial, submit, until, visitors

from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize("killed", ["master", "bridge"])
def test_processes_are_found_again(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any, killed: str
) -> None:
    experiment = submit(master, kernel, stops="8 13", port=gate.port)
    both = visitors(gate)
    run, slots = only_trial(experiment).run_id, only_trial(experiment).slots
    if killed == "bridge":
        bridge = master.bridge
        assert bridge is not None
        bridge.kill()
        let_go(both)  # they go on while nobody takes what they report
        until(lambda: master.bridge not in (None, bridge))
    else:
        before = master.master
        os.kill(before.pid, signal.SIGKILL)
        assert wait_until_gone(before.pid, before.start, PATIENCE)
        let_go(both)
        master.start()
    again = visitors(gate)
    assert {rank: visitor.pid for rank, visitor in again.items()} == {
        rank: visitor.pid for rank, visitor in both.items()
    }
    assert (only_trial(experiment).run_id, only_trial(experiment).slots) == (run, slots)
    let_go(again)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert end_of(kernel, experiment) == undisturbed_end
    assert log_of(experiment).count("records 2") == 2 * 5, "each line of output comes once"
