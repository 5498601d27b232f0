"""What a training on the cluster prints and shows stands in the cell that waits, as plain code's would."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from faults import GATE_CELL, Cluster, Executed, Gate, Kernel, running_kernel

pytestmark = pytest.mark.slow

CELLS = """
import logging, sys
import det_native as det
import matplotlib.pyplot as plt
import torch
from IPython.display import HTML, clear_output, display
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s of %(name)s: %(message)s")
x = torch.rand(8, 2)
print("above the training")
"""
MODEL = """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
context = det.experimental.pytorch.init({options})
net, optimizer = context.wrap(net, optimizer)

def step():
    loss = net(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss
"""
LOOP = """
print("before the loop")
losses = []
for epoch in context.epochs(9):
    losses.append(step().item())
    print("epoch", epoch, end=" ")
    print("ends")
    print("\\r 10 %\\r100 %", file=sys.stderr)
    logging.warning("warned")
    logging.getLogger("mine").info("informed")
    logging.getLogger("mine").debug("not shown")
    plt.plot(losses); plt.show()
    display(HTML(f"<b>{{epoch}}</b>"))
    if epoch == 1:
        print("at the gate")
        gate({port})
    if epoch == 2:
        print("last")
        break
print("after the loop", len(losses))
"""
CLEARING = """
for epoch in context.epochs(3):
    clear_output(wait=True)
    print("epoch", epoch)
    plt.plot([epoch]); plt.show()
    step()
"""
SEARCH = """
for epoch in context.epochs(2):
    print("rate", context.get_hparam("rate"), "epoch", epoch)
    step()
    context.report(loss=context.get_hparam("rate"))
"""


@pytest.fixture(scope="module")
def kernel(torch_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel for loops that print."""
    with running_kernel(torch_cluster, "printing", GATE_CELL, CELLS) as kernel:
        yield kernel


def lines(cell: Executed, *begins: str) -> list[str]:
    """Return what the training has shown: the lines that begin in one of these ways."""
    text = "\n".join(cell.shown).replace("<IPython.core.display.HTML object>", "<HTML>")
    return [line for line in re.sub("<Figure[^>]*>", "<Figure>", text).splitlines() if line.startswith(begins)]


def test_prints_and_figures_of_a_loop_stand_in_its_cell_once_though_its_worker_was_killed(
    kernel: Kernel, gate: Gate
) -> None:
    kernel.run(MODEL.format(options="{'min_checkpoint_period': {'epochs': 1}}"))
    cell = kernel.begin(LOOP.format(port=gate.port))
    visitor = gate.next()
    kernel.says(cell, "at the gate")  # while it trains
    visitor.die(signal.SIGKILL)
    gate.next().go()
    kernel.finish(cell)
    logged = ["WARNING of root: warned", "INFO of mine: informed"]
    epochs = [[f"epoch {epoch} ends", "100 %", *logged, "<Figure>", "<HTML>"] for epoch in range(3)]
    begins = "epoch", "100", "WARNING", "INFO", "DEBUG", "<", "at the", "last", "after"
    assert lines(cell, *begins) == [*epochs[0], *epochs[1], "at the gate", *epochs[2], "last", "after the loop 3"]
    assert "above the training" not in cell.text
    assert cell.text.count("before the loop") == 1
    assert set(kernel.value("[medium.kind for medium in det.last_experiment().media]")) == {"image"}


def test_a_cell_that_clears_its_output_shows_the_last(kernel: Kernel) -> None:
    kernel.run(MODEL.format(options=""))
    cell = kernel.run(CLEARING)
    assert "epoch 2" in cell.shown
    assert "".join(cell.printed).count("epoch") == 0


def test_of_a_search_the_best_trial_has_printed_the_lines_of_the_cell_that_waits_for_it(kernel: Kernel) -> None:
    search = {"name": "grid", "metric": "loss"}
    rates = {"type": "categorical", "vals": [0.3, 0.1, 0.2]}
    kernel.run(MODEL.format(options={"searcher": search, "hyperparameters": {"rate": rates}}))
    cell = kernel.run(SEARCH)
    assert lines(cell, "rate") == ["rate 0.1 epoch 0", "rate 0.1 epoch 1"]


KERAS = """
import det_native as det
import keras
import numpy as np

class Says(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("callback", epoch)

x = np.ones((8, 2), "float32")
context = det.experimental.keras.init()
model = context.wrap_model(keras.Sequential([keras.layers.Dense(1)]))
model.compile("sgd", "mse")
"""


@pytest.mark.long
def test_a_callback_of_keras_prints_and_the_lines_of_epochs_stand_there_where_keras_would_print_them(
    keras_cluster: Cluster,
) -> None:
    with running_kernel(keras_cluster, "printing", KERAS) as kernel:
        cell = kernel.run("history = model.fit(x, x[:, 0], epochs=2, callbacks=[Says()])")
        later = kernel.run("handle = model.fit(x, x[:, 0], epochs=2, callbacks=[Says()], verbose=2, wait=False)")
        waiting, again = kernel.run("handle.wait()"), kernel.run("handle.wait()")
    assert lines(cell, "callback", "Epoch") == ["callback 0", "callback 1"]
    found = [line.partition(":")[0] for line in lines(waiting, "callback", "Epoch")]
    assert found == ["callback 0", "Epoch 1/2", "callback 1", "Epoch 2/2"]
    assert lines(later, "callback") == lines(again, "callback") == []
