"""A worker that is killed: its trial goes on from the last checkpoint and ends as if nothing had happened."""

from __future__ import annotations

import signal
from typing import Any

import psutil
import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

CREATE = (
    "experiment = det.experimental.create(Digits, configuration(hyperparameters=settings, max_restarts=3, "
    "profiling={'period': 0.1}))"
)


def test_the_end_is_the_same_bit_for_bit(kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(kernel.submit_with(CREATE, stops="2 8 13", port=gate.port))
    gate.next().die(signal.SIGKILL)  # before the first checkpoint
    gate.next().go()
    visitor = gate.next()
    assert visitor.text == "8"  # in the middle of the second epoch, with a checkpoint in its middle
    checkpoint_at(experiment, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    visitor = gate.next()
    assert visitor.text == "13"
    psutil.Process(visitor.pid).send_signal(signal.SIGTERM)  # this one leaves time for a checkpoint
    visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 3
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == torch_end
    told = str(experiment.logs())
    assert told.count("killed by signal 9") == 2
    measured = [row["time"] for row in experiment.trials[0].metrics("system")]
    assert len(measured) >= 2  # each of four starts measures as long as it lives, however short that is
    assert measured == sorted(set(measured))
    for place in ("continues from the beginning.", "at batch 6.", "at batch 13."):
        assert place in told


FORKING = """
class Forking(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 7 and os.fork() == 0 and self.context.get_hparam("fails"):
            raise KeyError("of the child")
        return super().train_batch(batch, epoch_idx, batch_idx)
"""
CREATE_FORKING = (
    "experiment = det.experimental.create(Forking, configuration(hyperparameters=settings | {'fails': %s}))"
)


@pytest.mark.long
@pytest.mark.parametrize("fails", [False, True])
def test_a_forked_process_that_comes_back_into_the_training_reports_nothing(
    kernel: Kernel, torch_end: Any, cluster: Cluster, fails: bool
) -> None:
    if not fails:
        kernel.run(FORKING)
    experiment = cluster.attach(kernel.submit_with(CREATE_FORKING % fails))
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == torch_end
    told = str(experiment.logs())
    assert told.count("came back into the training. It ends here") == 1
    assert ("KeyError: 'of the child'" in told) == fails
