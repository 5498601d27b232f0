"""A master that goes away while weights are waited for, or whose experiments are gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import GATE_CELL, Cluster, Gate, Kernel, running_cluster, running_kernel
from torch_program import FIT, TORCH

pytestmark = pytest.mark.slow

CELL = "ran += 1; loss = loss_here()"


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master of its own."""
    with running_cluster(tmp_path_factory.mktemp("fragile"), "torch") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def module_kernel(fragile: Cluster) -> Iterator[Kernel]:
    """A kernel beside it."""
    with running_kernel(fragile, "notebook", GATE_CELL, TORCH) as kernel:
        yield kernel


@pytest.fixture
def kernel(module_kernel: Kernel, fragile: Cluster) -> Iterator[Kernel]:
    """The same, which has nothing to do, and has it after the test, too; the master runs."""
    yield module_kernel
    fragile.start()
    module_kernel.clear()
    assert module_kernel.run("1 + 1").text == "2"


def test_a_cell_that_waits_goes_on_when_the_master_is_back(kernel: Kernel, fragile: Cluster, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    waiting = kernel.begin(CELL)
    kernel.shows(waiting, "Experiment")
    fragile.det("down")
    kernel.shows(waiting, "No master answers")
    kernel.interrupt()
    assert "This cell has not run: run it again to wait again" in kernel.finish(waiting, fails=True).error
    waiting = kernel.begin(CELL)
    kernel.shows(waiting, "No master answers")
    visitor.go()
    fragile.start()
    assert "weights loaded into `model`" in kernel.finish(waiting).text
    assert kernel.value("ran") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "before", [pytest.param(True, marks=pytest.mark.soak), False], ids=["before it waits", "while it waits"]
)
def test_a_master_that_stays_away_is_said_and_the_cell_can_be_run_again(
    kernel: Kernel, fragile: Cluster, gate: Gate, before: bool
) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    number = kernel.value("history.id")
    if before:
        fragile.det("down")
    waiting = kernel.begin(CELL)
    if not before:
        kernel.shows(waiting, "Experiment")
        fragile.det("down")
    error = kernel.finish(waiting, fails=True).error
    assert error.startswith("MasterUnreachableError: No master answers at ")
    assert f"`model` needs the weights of experiment {number}; det.forget(model) goes on with the weights" in error
    visitor.go()
    fragile.start()
    assert "weights loaded into `model`" in kernel.run(CELL).text
    assert kernel.value("ran") == 1


@pytest.mark.parametrize("another", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_an_experiment_that_is_gone_is_said_once(kernel: Kernel, fragile: Cluster, another: bool) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()\nkept, ran = model, 0")
    kernel.run(FIT.format(""))
    kernel.run("history.wait()")
    number = kernel.value("context.experiment.id")
    fragile.det("down")
    for path in fragile.home.path.glob("det.db*"):
        path.unlink()
    fragile.start()
    for _ in range(number if another else 0):
        kernel.run("context, model, optimizer, train_batch = begin()")
        kernel.run(f"{FIT.format('')}\nhistory.wait()")
    error = kernel.run("ran += 1; kept.weight.sum()", fails=True).error
    assert error.startswith(
        f"NotFoundError: Experiment {number} is not there any more, so its weights cannot be loaded"
    )
    assert "keeps the weights that it has here" in error
    kernel.run("ran += 1; kept.weight.sum()")
    assert kernel.value("ran") == 1
