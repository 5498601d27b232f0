"""From a kernel to a GPU of the embedded master and back: its slots, a worker that is killed, what is loaded."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended, running_cluster
from programs import BATCHES, CONFIG, NATIVE_OBJECTS, NATIVE_SETUP, TORCH_CREATE, TORCH_SETUP, TORCH_TRIAL

from det_native.client.connect import connect
from det_native.schema import routes
from det_native.schema.states import ExperimentState

pytestmark = [pytest.mark.slow, pytest.mark.cuda]

WEIGHTS = """
def weights(experiment):
    trial = experiment.trials[0].checkpoints[-1].load()
    return [value.cpu().numpy().tobytes().hex() for value in trial.model.state_dict().values()]
"""

LOOP = """
import torch
for batch in context.train(loader(True), validation_loader=loader(False), evaluate_batch=evaluate_batch):
    print("on", batch[0].device.type, next(model.parameters()).device.type)
    context.backward(loss_of(batch))
    context.step_optimizer(optimizer)
"""


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with one GPU."""
    with running_cluster(tmp_path_factory.mktemp("cluster"), "torch", slots="cuda:1") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kernel(module_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel beside it."""
    made = Kernel(module_cluster, module_cluster.folder / "notebook")
    yield made
    made.close()


@pytest.fixture
def cluster(module_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master, which handles in this process find too."""
    monkeypatch.setenv("DET_HOME", str(module_cluster.home.path))
    with module_cluster.clearing() as cleared:
        yield cleared


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where workers wait for the test."""
    made = Gate()
    yield made
    made.close()


def test_its_slot_is_the_gpu(cluster: Cluster) -> None:
    slots = connect(start=False).call(routes.GET_MASTER).slots
    assert [slot.device for slot in slots] == ["cuda"] * len(slots)


def test_killed_and_continued_bit_for_bit(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    for cell in (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, WEIGHTS):
        kernel.run(cell)
    kernel.run("settings = {}")
    undisturbed = cluster.attach(kernel.submit(TORCH_CREATE))
    ended(undisturbed, ExperimentState.COMPLETED)
    kernel.run(f"settings = {{'stops': '8', 'port': {gate.port}}}")
    killed = cluster.attach(kernel.submit(TORCH_CREATE))
    visitor = gate.next()
    checkpoint_at(killed, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    assert ended(killed, ExperimentState.COMPLETED).restarts == 1
    assert_complete_rows(killed, BATCHES)
    of_both = [kernel.value(f"weights(det.attach({one.id}))") for one in (undisturbed, killed)]
    assert of_both[0] == of_both[1]


def test_a_loop_of_the_users_own_trains_there(kernel: Kernel, cluster: Cluster) -> None:
    for cell in (NATIVE_SETUP, GATE_CELL, CONFIG, "settings = {}", NATIVE_OBJECTS, LOOP):
        kernel.run(cell)
    experiment = cluster.attach(int(kernel.value("context.experiment.id")))
    ended(experiment, ExperimentState.COMPLETED)
    assert "on cuda cuda" in str(experiment.logs())
