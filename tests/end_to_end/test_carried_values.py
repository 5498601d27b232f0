"""What expensive cells made travels to the trials: models with what they learned, objects of classes of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

IMPORTS = """
import os
import numpy as np
import torch
import det_native as det
"""

CODE = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


class Table:
    def __init__(self, scale):
        self.x = scale * torch.arange(64, dtype=torch.float32).reshape(-1, 2)
"""

DRAWN = "noise = np.random.default_rng().normal(size=3)"
BUILT = "model = Net()"

#: Where it runs again, it says so.
SLOW = """
Path = __import__("pathlib").Path
Path({mark!r}).open("a").write("again\\n")
{built}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.rand(4, 2)).pow(2).sum().backward()
    optimizer.step()
optimizer.zero_grad()
table = Table(0.01)
"""
#: It counts as a cell that took most of a minute.
SLOWLY = """
from det_native.capture.log import current_log
[ran] = [one for one in current_log().executions[:-1] if "Adam" in one.source]
ran.time.duration = 45.0
"""

CONTEXT = """
config = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 2}}, "max_restarts": 0}
context = det.experimental.pytorch.init(config, show="none")
"""

SHOWN = """
def shown():
    moments = [one["exp_avg"].sum().item() for one in optimizer.state.values()]
    weights = [one.sum().item() for one in model.parameters()]
    held = [one is two for one, two in zip(optimizer.param_groups[0]["params"], model.parameters())]
    return repr((moments, weights, held, isinstance(table, Table), noise.tolist()))
"""

LOOP = """
print("value", shown())
student = context.wrap_model(torch.nn.Linear(2, 1))
steps = context.wrap_optimizer(torch.optim.SGD(student.parameters(), lr=1e-3))
data = torch.utils.data.TensorDataset(table.x)
for batch in context.train(torch.utils.data.DataLoader(data, batch_size=8)):
    loss = (student(batch[0]) - model(batch[0]).detach()).pow(2).mean() + 0 * float(noise.sum())
    context.backward(loss)
    context.step_optimizer(steps)
    context.report(loss=loss)
"""

#: As people write it: the call's cell wraps what the slow one has trained.
WRAPPED = """
print("value", shown())
model = context.wrap_model(model)
optimizer = context.wrap_optimizer(optimizer)
data = torch.utils.data.TensorDataset(table.x)
for batch in context.train(torch.utils.data.DataLoader(data, batch_size=8)):
    loss = (model(batch[0]) - float(noise.sum())).pow(2).mean()
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""


@pytest.fixture
def kernel(cluster: Cluster, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with nothing but the imports."""
    with running_kernel(cluster, tmp_path.name, IMPORTS) as kernel:
        yield kernel


@pytest.mark.parametrize(
    ("quick", "loop"),
    [
        pytest.param(True, LOOP, id="in place, used", marks=pytest.mark.long),
        pytest.param(False, WRAPPED, id="whole, trained on"),
    ],
)
def test_a_trial_has_the_model_that_a_slow_cell_trained(
    kernel: Kernel, cluster: Cluster, tmp_path: Path, quick: bool, loop: str
) -> None:
    mark = tmp_path / "ran"
    slow = SLOW.format(mark=str(mark), built="" if quick else BUILT)
    for cell in (CODE, DRAWN, BUILT if quick else "pass", slow, SLOWLY, SHOWN, CONTEXT):
        kernel.run(cell)
    before = kernel.value("shown()")
    kernel.run(loop)
    experiment = cluster.attach(kernel.value("context.experiment.id"))
    ended(experiment, ExperimentState.COMPLETED)
    [value] = [line.text for line in experiment.trials[0].logs() if line.text.startswith("value")]
    assert value == f"value {before}"
    assert "[True, True], True" in value
    assert mark.read_text() == "again\n"
    assert {row.what for row in experiment.report if row.how == "value"} == {"model", "optimizer", "table", "noise"}


#: A cell that took most of a minute, and wraps.
BUILDING = """
def make():
    model = torch.nn.Linear(2, 1)
    return context.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))

model, optimizer = make()
"""
TRAINING = """
losses = []
for epoch in context.epochs(3):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    context.report(loss=loss)
"""


def test_a_slow_cell_that_wraps_what_the_call_trains_runs_again(kernel: Kernel) -> None:
    kernel.run("torch.manual_seed(3)\ncontext = det.experimental.pytorch.init(show='none')")
    kernel.run_slowly(BUILDING)
    kernel.run("before = model(torch.ones(4, 2)).pow(2).mean().item()")
    kernel.run(TRAINING)
    assert kernel.value("[len(losses), losses[0] == before, losses[2] < losses[1] < losses[0]]") == [3, True, True]
