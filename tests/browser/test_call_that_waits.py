"""A call that trains waits under its live view, whose buttons work meanwhile."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from browser_parts import PATIENCE, Keep, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from training_notebook import write_notebook

pytestmark = pytest.mark.slow

PROGRAM = """
import time
import keras
import numpy as np
import det_native as det

class Slowly(keras.callbacks.Callback):  # what one batch takes, as a larger model's would
    def on_train_batch_end(self, batch, logs=None):
        time.sleep({pace})

keras.utils.set_random_seed(1)
x = np.linspace(-1, 1, 64 * 4).reshape(64, 4).astype("float32")
y = x.sum(1, keepdims=True)
context = det.experimental.keras.init({{"reproducibility": {{"experiment_seed": 1}}}})
model = context.wrap_model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
model.compile(keras.optimizers.Adam(0.05), "mse")
"""
FIT = "history = model.fit(x, y, validation_data=(x, y), epochs={epochs}, batch_size=8, callbacks=[Slowly()])"
PREDICT = "print('PREDICTED', model.predict(x[:3], verbose=0).ravel().tolist())"
TRAINED = """trained = det.last_experiment().trials[0].checkpoints[-1].load()
print('PREDICTED', trained.predict(x[:3], verbose=0).ravel().tolist())"""
OTHER = "print('WENT ON', det.last_experiment().state)"
SETUP, BEGIN, NEXT = range(3)


def seen_below(screen: Screen, number: int) -> str:
    """Return what stands below a cell, having scrolled to it: what is not on the screen is not drawn."""
    screen.show(number)
    return screen.cell(number).locator(".jp-OutputArea").inner_text()


def waits(screen: Screen, name: str, *, epochs: int, pace: float, then: str) -> Locator:
    """Begin the cell that trains; return the view under it once its curves move while the cell waits."""
    cells = (PROGRAM.format(pace=pace), f"{FIT.format(epochs=epochs)}\n{PREDICT}", then)
    screen.open(write_notebook(Path(screen.lab.root) / name, *cells))
    screen.run(SETUP)
    screen.start(BEGIN)
    view = screen.cell(BEGIN).locator(".det-view")

    def drawn() -> bool:
        screen.show(BEGIN)
        canvas = view.locator(".det-chart canvas").first
        return canvas.is_visible() and re.search(r"batch [1-9]", view.locator(".det-facts").inner_text()) is not None

    wait_until(drawn, "the curves are seen while the cell waits")
    assert "*" in screen.prompt(BEGIN)
    return view


def predicted(screen: Screen, number: int) -> list[float]:
    values: list[float] = ast.literal_eval(re.findall(r"PREDICTED (\[.*?\])", seen_below(screen, number))[-1])
    return values


@pytest.mark.long
def test_a_call_waits_under_the_curves_and_the_next_line_has_the_trained_model(screen: Screen, keep: Keep) -> None:
    view = waits(screen, "predict.ipynb", epochs=6, pace=0.2, then=TRAINED)
    keep(screen, "call-waits")
    wait_until(lambda: "*" not in screen.prompt(BEGIN), "the cell has run")
    expect(view.locator(".det-badge")).to_have_text("Completed")
    expect(view.get_by_role("button", name="Leave it running")).to_be_hidden()
    screen.run(NEXT)
    assert predicted(screen, BEGIN) == predicted(screen, NEXT)
    screen.save()


def test_the_buttons_work_while_the_call_waits(screen: Screen, master: MasterAnswers, keep: Keep) -> None:
    view = waits(screen, "leave.ipynb", epochs=1000, pace=0.5, then=OTHER)
    experiment = max(int(one["id"]) for one in master.get("/experiments"))
    view.get_by_role("button", name="Pause").click()
    expect(view.locator(".det-badge")).to_contain_text("Paused")
    view.get_by_role("button", name="Resume").click()
    keep(screen, "call-leave")
    view.get_by_role("button", name="Leave it running").click()
    wait_until(lambda: "*" not in screen.prompt(BEGIN), "the cell has ended")
    below = seen_below(screen, BEGIN)
    assert f"KeyboardInterrupt: Experiment {experiment} goes on. det.last_experiment().wait() waits" in below
    assert "PREDICTED [" not in below
    assert "Traceback" not in below
    screen.run(NEXT)
    expect(screen.cell(NEXT).locator(".jp-OutputArea")).to_contain_text("WENT ON", timeout=1000 * PATIENCE)
    assert master.get(f"/experiments/{experiment}")["state"] in ("ACTIVE", "QUEUED")
