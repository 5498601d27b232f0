"""User code that hangs, in real workers: its stacks are in the log, and it is run again or ended."""

from __future__ import annotations

import os
import signal

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, ended, events_until
from programs import BATCHES

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

HANGING = """
import threading

class Hanging(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        first = not os.path.exists(self.context.get_hparam("marker"))
        if batch_idx == 7 and first:
            open(self.context.get_hparam("marker"), "w").close()
            self.wait_for_ever()
        return super().train_batch(batch, epoch_idx, batch_idx)

    def wait_for_ever(self):
        threading.Event().wait()
"""
CREATE_HANGING = (
    "experiment = det.experimental.create(Hanging, configuration(watchdog={'minutes': 0.1, 'action': %r}, "
    "hyperparameters=settings | {'marker': %r}))"
)
CREATE = "experiment = det.experimental.create(Digits, configuration(hyperparameters=settings))"


@pytest.mark.parametrize("action", ["restart", "end"])
@pytest.mark.long
def test_a_trial_that_hangs_shows_where_and_goes_on_or_ends(
    kernel: Kernel, cluster: Cluster, tmp_path: os.PathLike[str], action: str
) -> None:
    if action == "restart":
        kernel.run(HANGING)
    marker = os.path.join(tmp_path, "marker")
    experiment = cluster.attach(kernel.submit_with(CREATE_HANGING % (action, marker)))
    if action == "restart":
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
        assert_complete_rows(experiment, BATCHES)
    else:
        ended(experiment, ExperimentState.ERROR)
    told = str(experiment.logs())
    assert "Nothing was reported for" in told
    assert "in wait_for_ever" in told
    assert "most recent call first" in told


@pytest.mark.long
def test_a_stopped_worker_is_told(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(kernel.submit_with(CREATE, stops="8", port=gate.port))
    visitor = gate.next()
    os.kill(visitor.pid, signal.SIGSTOP)
    try:
        event = events_until(experiment, lambda event: event.type == "experiment" and bool(event.data["waits_for"]))
        assert f"`kill -CONT {visitor.pid}`" in event.data["waits_for"]
    finally:
        os.kill(visitor.pid, signal.SIGCONT)
    visitor.go()
    ended(experiment, ExperimentState.COMPLETED)
