"""A trial on two slots whose gradients travel by Horovod: trained, killed, and continued."""

from __future__ import annotations

import signal

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, Visitor, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES

from det_native.client.handles import Experiment
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


@pytest.fixture(scope="module")
def undisturbed(torch_kernel: Kernel) -> int:
    """An experiment that nobody disturbs."""
    torch_kernel.run(CONNECTED)
    number = torch_kernel.submit_with(CREATE)
    torch_kernel.run("experiment.wait()")
    return number


def _both(gate: Gate) -> dict[str, Visitor]:
    return {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}


def _assert_complete(experiment: Experiment, restarts: int) -> None:
    assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
    assert_complete_rows(experiment, BATCHES)
    said = {(line.rank, line.text) for line in experiment.trials[0].logs() if line.text.startswith("connected")}
    assert said == {(0, "connected by horovod 2"), (1, "connected by horovod 2")}


def test_two_slots_train(undisturbed: int, kernel: Kernel, cluster: Cluster) -> None:
    _assert_complete(cluster.attach(undisturbed), 0)
    assert kernel.end_of(undisturbed)


@pytest.mark.long
def test_a_killed_slot_changes_nothing(undisturbed: int, kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(kernel.submit_with(CREATE, stops="8", port=gate.port))
    visitors = _both(gate)
    checkpoint_at(experiment, 6)
    left = psutil.Process(visitors["0"].pid)
    visitors["1"].die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)  # though it stands at the gate
    for visitor in _both(gate).values():
        visitor.go()
    _assert_complete(experiment, 1)
    assert "rank 1 of 2: killed by signal 9" in str(experiment.logs())
    assert kernel.end_of(experiment.id) == kernel.end_of(undisturbed)
