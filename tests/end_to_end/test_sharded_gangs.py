"""A trial whose model is sharded over two slots: trained, killed, continued, and loaded whole into the kernel."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended
from programs import BATCHES

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


@pytest.fixture(scope="module")
def undisturbed(torch_kernel: Kernel) -> int:
    """An experiment that nobody disturbs."""
    number = torch_kernel.submit_with(CREATE)
    torch_kernel.run("experiment.wait()")
    return number


@pytest.mark.long
def test_a_checkpoint_of_shards_is_loaded_whole(
    undisturbed: int, kernel: Kernel, cluster: Cluster, tmp_path: Path
) -> None:
    experiment = cluster.attach(undisturbed)
    ended(experiment, ExperimentState.COMPLETED)
    assert_complete_rows(experiment, BATCHES)
    folder = experiment.trials[0].checkpoints[-1].download(tmp_path / "checkpoint")
    assert {path.name for path in (folder / "sharded").iterdir()} == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    weights, *_ = kernel.end_of(undisturbed)
    assert [len(value) // 8 for value in weights] == [6 * 16, 16, 16 * 3, 3]  # whole, as four bytes in hex each


@pytest.mark.long
def test_a_killed_slot_changes_nothing(undisturbed: int, kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(kernel.submit_with(CREATE, stops="8", port=gate.port))
    found = {visitor.text.split()[1]: visitor for visitor in (gate.next(), gate.next())}
    checkpoint_at(experiment, 6)
    left = psutil.Process(found["0"].pid)
    found["1"].die(signal.SIGKILL)
    left.wait(timeout=PATIENCE)
    for visitor in (gate.next(), gate.next()):
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == kernel.end_of(undisturbed)
