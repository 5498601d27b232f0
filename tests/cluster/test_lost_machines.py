"""A machine of a training goes: the training goes on elsewhere and ends with the bits of an undisturbed one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from faults import Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES
from ray_cluster import RayCluster
from rig import (
    MACHINES,
    RayMaster,
    end_of,
    filled_object_stores,
    let_go,
    line_of,
    log_of,
    other_than_head,
    submit,
    until,
    visitors,
)

from det_native.schema.states import ExperimentState

# The first test of a process also starts the cluster, its master and a kernel.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


def test_a_machine_that_loses_its_power(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any
) -> None:
    experiment = submit(master, kernel, 1, stops="8", port=gate.port)
    both = visitors(gate)
    checkpoint_at(experiment, 6)
    ray.kill_node(other_than_head(ray, both))
    let_go(both)
    let_go(visitors(gate))
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert end_of(kernel, experiment) == undisturbed_end
    told = log_of(experiment)
    assert "is gone. Restart 1 of at most 1." in told
    assert "at batch 6." in told


@pytest.mark.long
def test_a_machine_that_hangs(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any
) -> None:
    experiment = submit(master, kernel, 1, stops="8", port=gate.port)
    both = visitors(gate)
    checkpoint_at(experiment, 6)
    hung = other_than_head(ray, both)
    hung.hang()
    let_go(both)
    let_go(visitors(gate))
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert end_of(kernel, experiment) == undisturbed_end
    assert "is gone. Restart 1 of at most 1." in log_of(experiment)
    # What has been away for so long is no machine of the cluster any more, and nothing of it works on.
    hung.go_on()
    until(
        lambda: not any("det_harness" in line_of(process) for process in hung.living()),
        lambda: [(process, line_of(process)) for process in hung.living()],
    )
    ray.kill_node(hung)


@pytest.mark.long
def test_a_machine_that_is_drained(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any
) -> None:
    """Whoever takes it away has said so before: the training ends with a checkpoint, and no restart is counted."""
    experiment = submit(master, kernel, stops="8", holds="8", port=gate.port)
    both = visitors(gate)
    drained = other_than_head(ray, both)
    drained.shut_down()
    until(lambda: any("being drained" in node.trouble for node in master.info.nodes))
    assert len(master.info.slots) >= MACHINES - 1
    let_go(both)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert end_of(kernel, experiment) == undisturbed_end
    told = log_of(experiment)
    assert "is being drained. The trial goes on elsewhere; no restart is counted." in told
    batch = re.search(r"The run ended after batch (\d+): the machine", told)
    assert batch is not None, told
    assert f"at batch {batch[1]}." in told
    until(lambda: not drained.processes(), drained.processes)
    ray.kill_node(drained)


@pytest.mark.long
def test_an_object_store_that_is_full(
    master: RayMaster, ray: RayCluster, kernel: Kernel, gate: Gate, undisturbed_end: Any
) -> None:
    """Another program of the cluster fills it; nothing of ours lies there."""
    with filled_object_stores(ray):
        experiment = submit(master, kernel, stops="8", port=gate.port)
        let_go(visitors(gate))
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
        assert_complete_rows(experiment, BATCHES)
        assert end_of(kernel, experiment) == undisturbed_end
        assert "records 0" in log_of(experiment)
