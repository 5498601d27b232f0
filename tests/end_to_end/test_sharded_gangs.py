"""A trial whose model is sharded over two slots: killed, continued, and loaded whole into the kernel."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, CONFIG, TORCH_SETUP, TORCH_TRIAL, TORCH_WEIGHTS
from test_gangs import RANKED

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

CREATE = """
experiment = det.experimental.create(
    Ranked,
    configuration(
        hyperparameters=settings,
        resources={"slots_per_trial": 2},
        distributed={"strategy": "fsdp", "fsdp_layers": ["Linear"]},
    ),
)
"""


def test_a_killed_slot_of_a_sharded_model_changes_nothing(
    module_kernel: Kernel, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    kernel = module_kernel
    for source in (TORCH_SETUP, CONFIG, GATE_CELL, TORCH_TRIAL, RANKED, TORCH_WEIGHTS):
        kernel.run(source)
    kernel.run("settings = {}")
    undisturbed = kernel.submit(CREATE)
    kernel.run("experiment.wait()")
    kernel.run(f"settings = {{'stops': '8', 'port': {gate.port}}}")
    experiment = cluster.attach(kernel.submit(CREATE))
    found = {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}
    checkpoint_at(experiment, 6)
    left = psutil.Process(found["0"].pid)
    found["1"].die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)
    for visitor in (gate.next(), gate.next()):
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    checkpoint = experiment.trials[0].checkpoints[-1]
    folder = checkpoint.download(tmp_path / "checkpoint")
    assert {path.name for path in (folder / "sharded").iterdir()} == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    ends = [kernel.value(f"weights(det.attach({number}))") for number in (experiment.id, undisturbed)]
    assert ends[0] == ends[1]
    assert [len(value) // 8 for value in ends[0]] == [6 * 16, 16, 16 * 3, 3]  # whole, as four bytes in hex each
