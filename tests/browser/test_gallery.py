"""What a Keras callback logs, and files that it writes: under a cell as it trains, on the page, in a saved notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser_parts import Keep, Lab, Opened, Screen, number_in, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from training_notebook import write_notebook
from view_parts import open_page, open_tab, section

pytest.importorskip("tensorflow")
pytestmark = [pytest.mark.slow, pytest.mark.long]

ODD = "<img src=x onerror=owned=1>"
DEFINITION = f"""
import time
import numpy as np
import tensorflow as tf
import det_native as det

x = np.random.default_rng(1).random((64, 8)).astype("float32")
y = x.sum(1, keepdims=True)

class Draws(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        time.sleep(PACE)
        ramp = np.linspace(0, 1, 64)
        picture = np.outer(ramp, ramp) * min(1.0, (epoch + 1) / 10)
        det.log_image("samples", np.stack([picture, 1 - picture], axis=0)[..., None], caption=f"epoch {{epoch + 1}}")
        det.log_image("attention map", np.random.default_rng(epoch).random((8, 8)))
        det.log(f1=epoch / (epoch + 3))
        det.log_histogram("weights", self.model.get_weights()[0])
        if epoch == 0:
            det.log_table("confusion", {{"class": ["cat", {ODD!r}], "cat": [12, 3], "dog": [1, 9.5]}})
            det.log_text("notes", "Began with " + {ODD!r})
            open("log.csv", "w").write("epoch,loss\\n0,1\\n")
"""
TRAIN = """
context = det.experimental.keras.init({"name": "draws"}, local=LOCAL)
model = context.wrap_model(tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1)]))
model.compile("sgd", "mse")
experiment = model.fit(x, y, batch_size=32, epochs=EPOCHS, callbacks=[Draws()], verbose=0)
experiment
"""


def cells(*, pace: float, epochs: int, local: bool = False) -> tuple[str, str]:
    train = TRAIN.replace("EPOCHS", str(epochs)).replace("LOCAL", str(local))
    return DEFINITION.replace("PACE", str(pace)), train.replace(", verbose=0", "" if local else ", verbose=0")


def card(view: Locator, name: str) -> Locator:
    return view.locator(f'.det-medium[aria-label="{name}"]')


def batch_of(shown: Locator) -> int:
    return number_in(shown.locator(".det-legend-batch").inner_text().partition("(")[0])


def is_drawn(picture: Locator) -> bool:
    """Whether a picture has come, and is one."""
    return bool(picture.evaluate("each => each.complete && each.naturalWidth > 0"))


def test_pictures_come_under_the_cell_while_it_trains_and_the_slider_stays(
    screen: Screen, lab: Lab, keep: Keep, master: MasterAnswers
) -> None:
    screen.open(write_notebook(lab.root / "draws.ipynb", *cells(pace=0.5, epochs=400)))
    screen.run_all(2)
    view = screen.cell(1).locator(".det-view").first
    samples = card(view, "samples")
    expect(samples).to_be_visible()
    samples.scroll_into_view_if_needed()
    expect(section(view, "Gallery").locator("summary")).to_have_text(
        "Gallery: 2 pictures, 1 histogram, 1 table, 1 text"
    )
    wait_until(lambda: is_drawn(samples.locator("img").first), "a picture is drawn")

    first = batch_of(samples)
    wait_until(lambda: batch_of(samples) > first, "a new picture comes by itself")

    slider = samples.get_by_role("slider", name="Batch of samples")
    slider.focus()
    screen.page.keyboard.press("Home")
    expect(samples.locator("img").first).to_have_attribute("alt", re.compile("^samples after batch 2"))
    expect(samples.locator(".det-media-caption").first).to_have_text("epoch 1")
    steps = int(slider.get_attribute("max") or 0)
    wait_until(lambda: int(slider.get_attribute("max") or 0) > steps, "more come")
    assert batch_of(samples) == 2, "the slider stays where it was put"
    screen.page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^batch 4 \(2 of \d+\)$"))
    screen.page.keyboard.press("End")
    wait_until(lambda: batch_of(samples) > 4, "it is at the newest")
    newest = batch_of(samples)
    wait_until(lambda: batch_of(samples) > newest, "there it follows the newest")

    table = card(view, "confusion").locator("table")
    table.scroll_into_view_if_needed()
    expect(table.locator("td").nth(3)).to_have_text(ODD)
    expect(card(view, "notes").locator("pre")).to_have_text(f"Began with {ODD}")
    expect(card(view, "weights").locator("svg")).to_have_attribute("aria-label", re.compile("8 values from"))
    expect(view.locator(".det-chart-title", has_text="f1")).to_be_visible()
    assert screen.page.evaluate("window.owned") is None
    keep(screen, "gallery-cell")
    screen.set_theme(dark=True)
    samples.scroll_into_view_if_needed()
    keep(screen, "gallery-cell-dark")


def test_the_page_has_the_files_to_look_into_and_to_download(
    opened: Opened, lab: Lab, keep: Keep, master: MasterAnswers, tmp_path: Path
) -> None:
    screen = opened(lab, height=1500)
    path = write_notebook(lab.root / "drawn.ipynb", *cells(pace=0, epochs=12), "experiment.wait(show='none').id")
    screen.open(path)
    screen.run_all(3)
    screen.save()
    view = screen.cell(1).locator(".det-view").first
    expect(view.locator(".det-badge").first).to_have_text("Completed")
    [number] = [each["id"] for each in master.get("/experiments") if each["name"] == "draws"][:1]
    page = open_page(screen, number)
    files = open_tab(page, "Files")
    expect(files).to_contain_text(re.compile(r"\d files?, "))
    files.get_by_role("button", name="log.csv").click()
    table = files.get_by_role("table", name="log.csv")
    expect(table.locator("th")).to_have_text(["epoch", "loss"])
    with screen.page.expect_download() as download:
        files.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == "epoch,loss\n0,1\n"
    keep(screen, "gallery-files")

    def saved() -> bool:
        screen.save()
        outputs = json.loads(path.read_text())["cells"][1]["outputs"]
        html = "".join(outputs[-1]["data"].get("text/html", ""))
        return "samples, batch 24" in html and html.count("data:image/png;base64") >= 3

    screen.page.locator(".lm-TabBar-tab", has_text="drawn.ipynb").first.click()
    wait_until(saved, "the saved notebook has the last pictures")


@pytest.mark.soak
def test_a_local_training_shows_them_while_its_cell_runs(screen: Screen, lab: Lab, keep: Keep) -> None:
    screen.open(write_notebook(lab.root / "here.ipynb", *cells(pace=0.5, epochs=400, local=True)))
    screen.run(0)
    screen.start(1)
    view = screen.cell(1).locator(".det-view").first
    samples = card(view, "samples")
    expect(samples).to_be_visible()
    samples.scroll_into_view_if_needed()
    wait_until(lambda: is_drawn(samples.locator("img").first), "a picture is drawn")
    assert screen.prompt(1) == "[*]:", "while the kernel is busy"
    first = batch_of(samples)
    wait_until(lambda: batch_of(samples) > first, "a new picture comes by itself")
    keep(screen, "gallery-local")
