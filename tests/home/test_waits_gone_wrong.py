"""What goes wrong while a call waits: a sentence says it, the training goes on, and the kernel lives on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_cluster, running_kernel
from torch_program import CONFIG, FIT, TORCH

pytestmark = pytest.mark.slow

BEGIN = "context, model, optimizer, train_batch = begin({})"
SEARCH = """
context = det.experimental.pytorch.init({
    **config,
    "hyperparameters": {"width": {"type": "categorical", "vals": [3, 5]}},
    "searcher": {"name": "grid", "metric": "loss", "smaller_is_better": smaller},
})
torch.manual_seed(0)
width = context.get_hparam("width")
net = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 1))
if width == WORSE:
    for weight in net.parameters():
        torch.nn.init.zeros_(weight)
model = context.wrap_model(net)
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), 0.001))

seen = []
def train_batch(batch, epoch_idx, batch_idx):
    seen.append(width)
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return loss
"""
WORK = """
import asyncio, threading
handles = []
def work():
    handles.append(context.fit(data, train_batch=train_batch, epochs=3))
    handles.append(loss_here())
def run_in_thread():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
async def await_work():
    work()
"""


def test_a_master_that_is_killed_is_started_again_and_the_wait_goes_on(tmp_path: Path, gate: Gate) -> None:
    with running_cluster(tmp_path, "torch") as own, running_kernel(own, "kernel", GATE_CELL, TORCH, CONFIG) as kernel:
        kernel.run(BEGIN.format(gate.port))
        waiting = kernel.begin(FIT.format(""))
        visitor = gate.next()
        psutil.Process(own.master.pid).kill()
        kernel.says(waiting, "it was started again")
        visitor.go()
        kernel.finish(waiting)
        assert kernel.value("context.experiment.state") == "Completed"


@pytest.mark.long
def test_a_master_that_was_stopped_stays_so_and_the_result_can_be_had_later(
    kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    kernel.run("from det_native.client import http_source\nusual, http_source.PATIENCE = http_source.PATIENCE, 2")
    kernel.run(BEGIN.format(gate.port))
    waiting = kernel.begin(FIT.format(""))
    visitor = gate.next()
    cluster.det("down")
    error = kernel.finish(waiting, fails=True).error
    assert error.startswith("MasterUnreachableError: No master answers at ")
    assert "may go on. det.experiment(" in error
    error = kernel.run("det.wait([context.experiment])", fails=True).error
    assert error.endswith("may go on. det.wait() waits again.")
    kernel.run("http_source.PATIENCE = usual")
    visitor.go()
    cluster.start()
    before = kernel.value("loss_here()")
    kernel.run("det.experiment(context.experiment.id).wait()")
    assert kernel.value("loss_here()") < before


@pytest.mark.long
def test_an_experiment_that_is_gone_is_said_once(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(BEGIN.format(""))
    kernel.run(FIT.format(", wait=False"))
    number = kernel.value("context.experiment.id")
    ended = f"det.experiment({number}).state"
    while kernel.value(ended) != "Completed":
        pass
    cluster.shown("experiment", "delete", "--yes", str(number))
    error = kernel.run("history.wait()", fails=True).error
    assert error.startswith("NotFoundError: ")


def _overwrite(path: Path) -> None:
    path.write_bytes(b"-" * path.stat().st_size)


@pytest.mark.long
@pytest.mark.parametrize("damage", [_overwrite, pytest.param(Path.unlink, marks=pytest.mark.soak)])
def test_a_damaged_checkpoint_is_told_once(kernel: Kernel, cluster: Cluster, damage: Callable[[Path], None]) -> None:
    kernel.run(f"{BEGIN.format('')}\nbefore = loss_here()")
    kernel.run(FIT.format(", wait=False"))
    while kernel.value("history.state") != "Completed":
        pass
    uuid = kernel.value("history.checkpoints[-1].uuid")
    [*paths] = (path for path in (cluster.home.path / "checkpoints" / uuid).iterdir() if path.name != "manifest.json")
    damage(max(paths, key=lambda path: path.stat().st_size))
    error = kernel.run("history.wait()", fails=True).error
    assert error.startswith(f"CheckpointCorruptError: Checkpoint {uuid}: the ")
    assert "Nothing is loaded; det.experiment(" in error
    kernel.run("history.wait()")
    assert kernel.value("before == loss_here()")


@pytest.mark.long
@pytest.mark.parametrize("worse", [3, 5])
def test_a_search_brings_its_best_trial_where_shapes_fit(kernel: Kernel, worse: int) -> None:
    kernel.run("smaller = True")
    kernel.run(f"WORSE = {worse}\n{SEARCH}\nbefore = model[0].weight.sum().item()")
    text = kernel.run(f"{FIT.format('')}\nlosses = len(history.history['loss'])").text
    here, best = kernel.value("[width, history.best_trial.hparams['width']]")
    if best != here:
        assert f"The best trial has width = {best}, this notebook has width = {here}: its weights stay" in text
        assert "experiment.top_checkpoint().load() makes the model" in text
    assert kernel.value("before != model[0].weight.sum().item()") == (best == here)
    assert kernel.value("losses") == 3
    assert kernel.value("seen") == [best] * 12, "what has changed comes in any case"


@pytest.mark.long
@pytest.mark.parametrize("call", ["run_in_thread()", "await await_work()"])
def test_a_call_in_a_thread_or_a_coroutine_waits_there(kernel: Kernel, call: str) -> None:
    kernel.run(BEGIN.format("local=True"))
    kernel.run(FIT.format(""))
    local = kernel.value("loss_here()")
    kernel.run(WORK)
    kernel.run(BEGIN.format(""))
    ran = kernel.run(call)
    assert kernel.value("handles[1]") == local, ran.text


@pytest.mark.long
def test_a_kernel_that_is_killed_while_it_waits_leaves_the_training_running(
    cluster: Cluster, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    with running_kernel(cluster, "killed", GATE_CELL, TORCH, CONFIG) as kernel:
        kernel.run(BEGIN.format(gate.port))
        kernel.begin(FIT.format(""))
        visitor = gate.next()
        [number] = cluster.running()
        kernel.kill()
    visitor.go()
    experiment = cluster.attach(number)
    experiment.wait(show="none")
    assert experiment.state == "Completed"
