"""A Keras worker that is killed: its trial goes on from the last checkpoint and ends as if nothing had happened."""

from __future__ import annotations

import signal

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, assert_complete_rows, ended
from programs import BATCHES, CONFIG, KERAS_CALLBACK, KERAS_DATA, KERAS_FIT, KERAS_SETUP, KERAS_WEIGHTS

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

FRAMEWORK = "keras"


@pytest.fixture(scope="module")
def undisturbed(module_kernel: Kernel) -> list[str]:
    """The weights at the end of a run that nobody disturbed."""
    for source in (KERAS_SETUP, GATE_CELL, CONFIG, KERAS_DATA, KERAS_CALLBACK, KERAS_WEIGHTS):
        module_kernel.run(source)
    module_kernel.run("settings = {}")
    module_kernel.run(KERAS_FIT)
    module_kernel.run("experiment.wait()")
    found: list[str] = module_kernel.value("weights(experiment)")
    return found


def test_in_mid_epoch(undisturbed: list[str], kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    settings = {"stops": "8", "port": gate.port}
    kernel.run(f"settings = {settings}")
    number = kernel.submit(KERAS_FIT)
    gate.next().die(signal.SIGKILL)
    gate.next().go()
    experiment = cluster.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert kernel.value("weights(experiment)") == undisturbed
    log = str(experiment.logs())
    assert "killed by signal 9" in log
    assert "at batch 6." in log


def test_before_the_first_checkpoint_and_in_the_last_batch(
    undisturbed: list[str], kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    settings = {"stops": "2 15", "port": gate.port}
    kernel.run(f"settings = {settings}")
    number = kernel.submit(KERAS_FIT)
    gate.next().die(signal.SIGKILL)
    gate.next().go()
    gate.next().die(signal.SIGKILL)
    gate.next().go()
    experiment = cluster.attach(number)
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 2
    assert_complete_rows(experiment, BATCHES)
    assert kernel.value("weights(experiment)") == undisturbed
    log = str(experiment.logs())
    assert "from the beginning." in log
    assert "at batch 12." in log
