"""Predict while it trains: the cell below waits for the weights under the live curves, and can be interrupted."""

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
TRAINED = """trained = history.trials[0].checkpoints[-1].load()
print('PREDICTED', trained.predict(x[:3], verbose=0).ravel().tolist())"""
OTHER = "print('WENT ON', history.state)"
SETUP, BEGIN, USE, NEXT = range(4)
LOADED = "weights loaded into `model`"


def open_notebook(screen: Screen, name: str, *, epochs: int, pace: float, then: str) -> None:
    cells = (PROGRAM.format(pace=pace), FIT.format(epochs=epochs) + "\nhistory", PREDICT, then)
    screen.open(write_notebook(Path(screen.lab.root) / name, *cells))
    screen.run(SETUP, BEGIN)


def seen_below(screen: Screen, number: int) -> str:
    """Return what stands below a cell, having scrolled to it: what is not on the screen is not drawn."""
    screen.show(number)
    return screen.cell(number).locator(".jp-OutputArea").inner_text()


def waits(screen: Screen, experiment: int) -> Locator:
    """Begin the cell that predicts; return the view under it once it is seen to wait under moving curves."""
    screen.start(USE)
    line = f"Waiting for experiment {experiment}, whose weights `model` needs. To stop waiting, interrupt the cell"
    wait_until(lambda: line in seen_below(screen, USE), "the cell says for what it waits")
    view = screen.cell(USE).locator(".det-view")
    expect(view.locator(".det-title")).to_have_text(f"Experiment {experiment}")

    def drawn() -> bool:
        screen.show(USE)
        canvas = view.locator(".det-chart canvas").first
        return canvas.is_visible() and re.search(r"batch [1-9]", view.locator(".det-facts").inner_text()) is not None

    wait_until(drawn, "the curves are seen while the cell waits")
    assert "*" in screen.prompt(USE)
    return view


def newest(master: MasterAnswers) -> int:
    return max(int(one["id"]) for one in master.get("/experiments"))


def predicted(screen: Screen, number: int) -> list[float]:
    values: list[float] = ast.literal_eval(seen_below(screen, number).rpartition("PREDICTED")[2].strip())
    return values


@pytest.mark.long
def test_a_cell_that_predicts_waits_under_the_curves_and_has_the_trained_model(
    screen: Screen, master: MasterAnswers, keep: Keep
) -> None:
    open_notebook(screen, "predict.ipynb", epochs=6, pace=0.2, then=TRAINED)
    experiment = newest(master)
    view = waits(screen, experiment)
    keep(screen, "predict-waits")
    wait_until(lambda: "*" not in screen.prompt(USE), "the cell has run")
    below = seen_below(screen, USE)
    assert "Waiting for" not in below
    assert f"Experiment {experiment}: {LOADED}." in below
    expect(view.locator(".det-badge")).to_have_text("Completed")
    expect(view.locator(".det-facts")).to_contain_text(LOADED)
    keep(screen, "predict-loaded")
    screen.show(BEGIN)
    begun = screen.cell(BEGIN).locator(".det-view")
    expect(begun.locator(".det-facts")).to_contain_text(LOADED)
    expect(begun.locator(".det-badge")).to_have_text("Completed")
    keep(screen, "predict-fit-cell")
    screen.run(NEXT)
    assert predicted(screen, USE) == predicted(screen, NEXT)
    screen.save()
    saved = Path(screen.lab.root, "predict.ipynb").read_text()
    assert saved.count(LOADED) >= 4, "text and HTML of both views"


@pytest.mark.soak
def test_the_stop_button_ends_the_waiting_and_not_the_experiment(
    screen: Screen, master: MasterAnswers, keep: Keep
) -> None:
    open_notebook(screen, "stop.ipynb", epochs=1000, pace=0.5, then=OTHER)
    experiment = newest(master)
    view = waits(screen, experiment)
    screen.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:interrupt-kernel']").click()
    wait_until(lambda: "*" not in screen.prompt(USE), "the cell has ended")
    below = seen_below(screen, USE)
    assert f"No longer waiting for experiment {experiment}." in below
    assert f"KeyboardInterrupt: Experiment {experiment} goes on. This cell has not run: run it again" in below
    assert below.count("goes on") == 1
    assert "PREDICTED" not in below
    assert "Traceback" not in below
    keep(screen, "predict-interrupted")
    expect(view.locator(".det-badge")).to_have_text("Running")
    screen.run(NEXT)
    expect(screen.cell(NEXT).locator(".jp-OutputArea")).to_contain_text("WENT ON Running", timeout=1000 * PATIENCE)
    assert master.get(f"/experiments/{experiment}")["state"] == "ACTIVE"
