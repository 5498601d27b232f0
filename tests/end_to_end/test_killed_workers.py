"""A worker that is killed: its trial goes on from the last checkpoint and ends as if nothing had happened."""

from __future__ import annotations

import signal

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import (
    BATCHES,
    CONFIG,
    KERAS_CALLBACK,
    KERAS_DATA,
    KERAS_FIT,
    KERAS_SETUP,
    KERAS_WEIGHTS,
    TORCH_CREATE,
    TORCH_SETUP,
    TORCH_TRIAL,
    TORCH_WEIGHTS,
)

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

TORCH = (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, TORCH_WEIGHTS)
KERAS = (KERAS_SETUP, GATE_CELL, CONFIG, KERAS_DATA, KERAS_CALLBACK, KERAS_WEIGHTS)


def _submit(kernel: Kernel, call: str, **settings: object) -> int:
    kernel.run(f"settings = {settings}")
    return kernel.submit(call)


@pytest.mark.parametrize(("cells", "call"), [(TORCH, TORCH_CREATE), (KERAS, KERAS_FIT)], ids=["torch", "keras"])
def test_the_end_is_the_same_bit_for_bit(
    cells: tuple[str, ...], call: str, kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    for cell in cells:
        kernel.run(cell)
    undisturbed = cluster.attach(_submit(kernel, call))
    middle = cluster.attach(_submit(kernel, call, stops="8", port=gate.port))
    early = cluster.attach(_submit(kernel, call, stops="2", port=gate.port))
    killed: set[str] = set()
    for _ in range(4):
        visitor = gate.next()
        if visitor.text in killed:
            visitor.go()
            continue
        if visitor.text == "8":  # in the middle of the second epoch, with a checkpoint in its middle
            checkpoint_at(middle, 6)
        killed.add(visitor.text)
        visitor.die(signal.SIGKILL)

    expected = []
    for experiment, restarts in ((undisturbed, 0), (middle, 1), (early, 1)):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
        assert_complete_rows(experiment, BATCHES)
        expected.append(kernel.value(f"weights(det.attach({experiment.id}))"))
    assert expected[1] == expected[0]
    assert expected[2] == expected[0]
    assert "killed by signal 9" in str(middle.logs())
    assert "at batch 6." in str(middle.logs())
    assert "continues from the beginning." in str(early.logs())
