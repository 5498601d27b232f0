"""Keras on the master: its training, and a worker that is killed."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, KERAS_FIT

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow


def test_a_killed_worker_changes_nothing(
    keras_kernel: Kernel, keras_end: Any, keras_cluster: Cluster, gate: Gate
) -> None:
    experiment = keras_cluster.attach(keras_kernel.submit_with(KERAS_FIT, stops="2 8", port=gate.port))
    gate.next().die(signal.SIGKILL)  # before the first checkpoint
    gate.next().go()
    visitor = gate.next()
    assert visitor.text == "8"  # in the middle of the second epoch, with a checkpoint in its middle
    checkpoint_at(experiment, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 2
    assert_complete_rows(experiment, BATCHES)
    assert keras_kernel.end_of(experiment.id) == keras_end
    told = str(experiment.logs())
    assert "continues from the beginning." in told
    assert "at batch 6." in told
