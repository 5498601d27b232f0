"""A cell with a loop of PyTorch that failed, or was interrupted, and was mended: the cluster trains it."""

from __future__ import annotations

import pytest
from journey_kernel import Notebook
from saved_notebook import value

pytestmark = [pytest.mark.slow, pytest.mark.long]

IMPORTS = "import torch\nimport det_native as det\nfrom torch.utils.data import DataLoader, TensorDataset"
#: Functions in a cell of their own: what they read is made by the cell that trains.
FUNCTIONS = """
def records(count):
    x = torch.linspace(-1, 1, 4 * count).reshape(count, 4)
    return TensorDataset(x, x.sum(1, keepdim=True))

def loss_of(batch):
    x, y = batch
    return torch.nn.functional.mse_loss(model(x), y)

def evaluate_batch(batch):
    return {"val_loss": loss_of(batch)}
"""
TRAIN = """
context = det.experimental.pytorch.init({init})
model = context.wrap_model(torch.nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
losses = []
for batch in context.train(DataLoader(records(48), batch_size=16), epochs=2):
    loss = loss_of(batch)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    losses.append(loss.item())
"""
SEEDED = '{"reproducibility": {"experiment_seed": 3}}'
HERE, THERE = TRAIN.format(init=f"{SEEDED}, local=True"), TRAIN.format(init=SEEDED)


@pytest.fixture(scope="module")
def prepared(notebook: Notebook) -> Notebook:
    """The cells above the one that trains, and the losses of an undisturbed training."""
    for cell in (IMPORTS, FUNCTIONS, HERE, "expected = context.experiment.history"):
        notebook.run(cell)
    return notebook


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        (HERE.replace("losses.append(loss.item())", "losses.append(loss.itme())"), "AttributeError"),
        (
            HERE.replace("    losses", "    if losses:\n        raise KeyboardInterrupt\n    losses"),
            "KeyboardInterrupt",
        ),
        (HERE + "print(sum(losses) / len(loses))", "NameError"),
        (THERE + "print(evaluate_batch(batches))", "NameError"),
        (THERE.replace("loss_of(batch)", "loss_off(batch)"), ""),
    ],
    ids=[
        "in the loop",
        "interrupted",
        "behind the loop",
        "behind the loop on the cluster",
        "in the loop on the cluster",
    ],
)
def test_a_loop_that_failed_and_was_mended_trains(prepared: Notebook, failed: str, error: str) -> None:
    assert error in prepared.run(failed, cell=error or "cluster", fails=True).error
    ran = prepared.run(f"{THERE}context.experiment.wait()", cell=error or "cluster")
    assert "failed" not in ran.stderr
    assert value(prepared, "context.experiment.history == expected") is True


def test_what_a_failed_training_made_travels_with_the_training_of_another_cell(prepared: Notebook) -> None:
    made, loop = HERE.split("losses = []")
    prepared.run(f"{made}losses = [0]{loop}1 / 0", fails=True)
    prepared.run(THERE.split("model =")[0] + "model = context.wrap_model(torch.nn.Linear(4, 1))")
    ran = prepared.run(
        "optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))"
        f"{loop}context.experiment.wait()\nprint(len(losses))"
    )
    assert value(prepared, "context.experiment.history == expected") is True
    rows = value(prepared, "[(row.what, row.how) for row in context.experiment.report]")
    assert ("losses", "value") in rows, rows
    assert "does not" not in ran.text
