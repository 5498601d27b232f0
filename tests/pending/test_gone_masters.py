"""A master that goes away while weights are waited for, or whose experiments are gone."""

from __future__ import annotations

import pytest
from faults import Cluster, Gate, Kernel
from torch_program import FIT

pytestmark = pytest.mark.slow

CELL = "ran += 1; loss = loss_here()"


@pytest.mark.long
def test_a_cell_that_waits_goes_on_when_the_master_is_back(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    waiting = kernel.begin(CELL)
    kernel.shows(waiting, "Experiment")
    cluster.det("down")
    kernel.shows(waiting, "No master answers")
    kernel.interrupt()
    assert "This cell has not run: run it again to wait again" in kernel.finish(waiting, fails=True).error
    waiting = kernel.begin(CELL)
    kernel.shows(waiting, "No master answers")
    visitor.go()
    cluster.start()
    assert "weights loaded into `model`" in kernel.finish(waiting).text
    assert kernel.value("ran") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "before", [pytest.param(True, marks=pytest.mark.soak), False], ids=["before it waits", "while it waits"]
)
def test_a_master_that_stays_away_is_said_and_the_cell_can_be_run_again(
    kernel: Kernel, cluster: Cluster, gate: Gate, before: bool
) -> None:
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    kernel.run(FIT.format(""))
    visitor = gate.next()
    number = kernel.value("history.id")
    if before:
        cluster.det("down")
    waiting = kernel.begin(CELL)
    if not before:
        kernel.shows(waiting, "Experiment")
        cluster.det("down")
    error = kernel.finish(waiting, fails=True).error
    assert error.startswith("MasterUnreachableError: No master answers at ")
    assert f"`model` needs the weights of experiment {number}; det.forget(model) goes on with the weights" in error
    visitor.go()
    cluster.start()
    assert "weights loaded into `model`" in kernel.run(CELL).text
    assert kernel.value("ran") == 1


@pytest.mark.long
@pytest.mark.parametrize("another", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_an_experiment_that_is_gone_is_said_once(kernel: Kernel, cluster: Cluster, another: bool) -> None:
    kernel.run("context, model, optimizer, train_batch = begin()\nkept, ran = model, 0")
    kernel.run(FIT.format(""))
    kernel.run("history.wait()")
    number = kernel.value("context.experiment.id")
    if another:
        cluster.det("down")
        for path in cluster.home.path.glob("det.db*"):
            path.unlink()
        cluster.start()
        for _ in range(number):
            kernel.run("context, model, optimizer, train_batch = begin()")
            kernel.run(f"{FIT.format('')}\nhistory.wait()")
    else:
        cluster.shown("experiment", "delete", "--yes", str(number))
    error = kernel.run("ran += 1; kept.weight.sum()", fails=True).error
    assert error.startswith(
        f"NotFoundError: Experiment {number} is not there any more, so its weights cannot be loaded"
    )
    assert "keeps the weights that it has here" in error
    kernel.run("ran += 1; kept.weight.sum()")
    assert kernel.value("ran") == 1
