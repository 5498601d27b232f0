"""``det.experimental.pytorch.init()`` in JupyterLab: a loop of one's own on the cluster, its views, its checkpoints."""

from __future__ import annotations

import pytest
from browser_parts import Keep, Lab, Screen, number_in
from master_answers import MasterAnswers
from playwright.sync_api import expect
from training_notebook import write_notebook
from view_parts import accept, load_checkpoint, open_dialog, open_page, open_tab, type_into

pytestmark = [pytest.mark.slow, pytest.mark.soak]

OBJECTS = """
import torch
import det_native as det

x = torch.linspace(-1, 1, 64).reshape(16, 4)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
context = det.experimental.pytorch.init({{"name": "{name}"}})
model = context.wrap_model(torch.nn.Linear(4, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))

def measure(batch):
    return {{"val_loss": torch.nn.functional.mse_loss(model(batch[0]), batch[1])}}
"""

LOOP = """
for batch in context.train(loader, epochs=20, validation_loader=loader, evaluate_batch=measure):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""

FIT = """
def step(batch, epoch_idx, batch_idx):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

experiment = context.fit(loader, loader, train_batch=step, evaluate_batch=measure, epochs=3)
"""

PREDICT = 'print(f"{type(model).__name__} predicts {model(torch.full((1, 4), 0.25)).item():.1f}")'


def test_a_loop_of_ones_own_is_watched_and_the_model_of_its_best_checkpoint_loaded(
    screen: Screen, lab: Lab, keep: Keep
) -> None:
    cells = (OBJECTS.format(name="own loop"), LOOP, "context.experiment")
    screen.open(write_notebook(lab.root / "own-loop.ipynb", *cells))
    screen.run(0, 1, 2)
    view = screen.cell(2).locator(".det-view").first
    expect(view.get_by_role("status").first).to_have_text("Completed")
    expect(view).to_contain_text("best val_loss")
    expect(view.get_by_role("img", name="loss over batches")).to_be_visible()
    keep(screen, "own-loop-live")

    page = open_page(screen, number_in(view.locator(".det-title").inner_text()))
    load_checkpoint(open_tab(page, "Checkpoints"))
    expect(screen.cell(3)).to_contain_text("model = checkpoint.load()")
    expect(screen.cell(3)).not_to_contain_text("import det_native")
    screen.run(3)
    type_into(screen, 4, PREDICT)
    screen.run(4)
    expect(screen.cell(4).locator(".jp-OutputArea-output")).to_have_text("Linear predicts 1.0")
    keep(screen, "own-loop-loaded")


def test_notebooks_with_objects_of_ones_own_are_submitted(screen: Screen, lab: Lab, master: MasterAnswers) -> None:
    before = {one["id"] for one in master.get("/experiments")}
    calls = {"a fit": FIT, "a loop": LOOP}
    screen.open()
    panel = screen.open_panel()
    for name, call in calls.items():
        path = write_notebook(lab.root / f"{name.replace(' ', '-')}.ipynb", OBJECTS.format(name=name), call)
        screen.open_beside(path)
        dialog = open_dialog(screen)
        accept(dialog).click()
        dialog.wait_for(state="detached")
        expect(panel.locator(".det-Row", has_text=name).locator(".det-Row-state")).to_contain_text("Completed")
    submitted = [one for one in master.get("/experiments") if one["id"] not in before]
    assert sorted(one["name"] for one in submitted) == sorted(calls)
    assert all(one["best_validation"] < 0.5 for one in submitted)
