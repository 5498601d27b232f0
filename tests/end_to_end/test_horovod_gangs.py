"""A trial on two slots whose gradients travel by Horovod: killed, and continued."""

from __future__ import annotations

import signal

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, Visitor, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES, CONFIG, TORCH_SETUP, TORCH_TRIAL, TORCH_WEIGHTS
from test_gangs import RANKED

from det_native.frameworks import has_horovod
from det_native.schema.states import ExperimentState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_horovod(), reason="Horovod is not installed here: sh tools/horovod.sh builds it."),
]

# Says with every batch whether Horovod connects the slots.
CONNECTED = """
class Connected(Ranked):
    def train_batch(self, batch, epoch_idx, batch_idx):
        print("connected by horovod", sys.modules["horovod.torch"].size())
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

CREATE = """
experiment = det.experimental.create(
    Connected,
    configuration(hyperparameters=settings, resources={"slots_per_trial": 2}, distributed={"backend": "horovod"}),
)
"""


def _both(gate: Gate) -> dict[str, Visitor]:
    return {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}


def test_a_killed_slot_changes_nothing(module_kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    kernel = module_kernel
    for source in (TORCH_SETUP, CONFIG, GATE_CELL, TORCH_TRIAL, RANKED, CONNECTED, TORCH_WEIGHTS):
        kernel.run(source)
    kernel.run("settings = {}")
    undisturbed = kernel.submit(CREATE)
    kernel.run("experiment.wait()")
    kernel.run(f"settings = {{'stops': '8', 'port': {gate.port}}}")
    experiment = cluster.attach(kernel.submit(CREATE))
    visitors = _both(gate)
    checkpoint_at(experiment, 6)
    left = psutil.Process(visitors["0"].pid)
    visitors["1"].die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)  # though it stands at the gate
    for visitor in _both(gate).values():
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert "rank 1 of 2: killed by signal 9" in str(experiment.logs())
    ends = [kernel.value(f"weights(det.attach({number}))") for number in (experiment.id, undisturbed)]
    assert ends[0] == ends[1]
    said = {line.text for line in experiment.trials[0].logs() if line.text.startswith("connected")}
    assert said == {"connected by horovod 2"}
