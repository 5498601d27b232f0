"""A hundred thousand points in a chart: a drawing takes less than a frame, and no peak is lost on the way."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from browser_parts import Keep, Lab, Opened, wait_until
from playwright.sync_api import Locator, Response, expect
from training_notebook import write_notebook

pytestmark = [pytest.mark.slow, pytest.mark.soak]

POINTS = 100_000
PEAK = 50.0
PEAK_AT = 31_337
FRAME_MILLISECONDS = 1000 / 60
UPDATES = 12

DEFINITION = f"""
import math, time
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Many(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05))
        self.done = 0

    def build_training_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.zeros(5000, 1)), batch_size=1)

    def build_validation_data_loader(self):
        return DataLoader(torch.utils.data.TensorDataset(torch.zeros(1, 1)), batch_size=1)

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.done += 1
        if self.done > {POINTS}:
            time.sleep(0.05)
        return {{"loss": {PEAK} if self.done == {PEAK_AT} else math.sin(self.done / 3000)}}

    def evaluate_batch(self, batch):
        return {{"error": 1.0}}
"""

CREATE = f"""
config = {{
    "name": "many points",
    "hyperparameters": {{"global_batch_size": 1}},
    "searcher": {{"name": "single", "metric": "error", "max_length": {{"batches": {2 * POINTS}}}}},
    "min_validation_period": {{"batches": {10 * POINTS}}},
    "scheduling_unit": 1000,
    "max_restarts": 0,
}}
experiment = det.experimental.create(Many, config)
while not experiment.trials or experiment.trials[0].detail().batches < {POINTS}:
    time.sleep(0.1)
experiment
"""

# How long a frame's callbacks work that draw a chart: what uPlot leaves to microtasks is done before ours.
MEASURE = """() => {
  window.drawings = [];
  let drawn = false;
  const stroke = CanvasRenderingContext2D.prototype.stroke;
  CanvasRenderingContext2D.prototype.stroke = function (...given) {
    drawn ||= this.canvas.closest('.det-chart') !== null;
    return stroke.apply(this, given);
  };
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = callback =>
    request(time => {
      const begin = performance.now();
      drawn = false;
      callback(time);
      queueMicrotask(() => drawn && window.drawings.push(performance.now() - begin));
    });
}"""

# The height, as a share of the plot, that ink of the line's colour reaches near a place on the x axis.
HEIGHT_AT = """([canvas, share]) => {
  const { width, height } = canvas;
  const plot = canvas.parentElement.querySelector('.u-over').getBoundingClientRect();
  const whole = canvas.getBoundingClientRect();
  const scale = width / whole.width;
  const left = Math.floor((plot.left - whole.left + plot.width * share - 3) * scale);
  const top = Math.round((plot.top - whole.top) * scale);
  const rows = Math.floor(plot.height * scale);
  const { data } = canvas.getContext('2d').getImageData(left, top, Math.ceil(7 * scale), rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < data.length / rows / 4; column++) {
      const at = (row * data.length) / rows + column * 4;
      const [red, , blue, alpha] = data.subarray(at, at + 4);
      if (alpha > 40 && blue > red + 40) {
        return 1 - row / rows;
      }
    }
  }
  return 0;
}"""


def height_at(chart: Locator, share: float) -> float:
    """Return how high the blue of a chart's line reaches at a share of its width."""
    canvas = chart.locator("canvas").element_handle()
    return float(chart.page.evaluate(HEIGHT_AT, [canvas, share]))


def test_a_hundred_thousand_points_are_drawn_within_a_frame_and_the_peak_is_seen(
    opened: Opened, lab: Lab, keep: Keep
) -> None:
    screen = opened(lab)
    answers: list[Response] = []
    screen.page.on("response", lambda response: answers.append(response) if "/curves" in response.url else None)
    screen.open(write_notebook(lab.root / "many.ipynb", DEFINITION, CREATE))
    screen.page.evaluate(MEASURE)
    screen.run_all(2)
    view = screen.cell(1).locator(".det-view").first
    chart = view.locator(".det-chart", has_text="loss")
    expect(chart.locator("canvas")).to_be_visible()
    chart.scroll_into_view_if_needed()
    expect(view.locator(".det-facts")).to_contain_text(f"of {2 * POINTS:,}")

    screen.page.evaluate("window.drawings.length = 0")
    wait_until(lambda: screen.page.evaluate("window.drawings.length") >= UPDATES, f"{UPDATES} updates")
    took: list[float] = screen.page.evaluate("window.drawings")
    print(f"drawing {POINTS:,} points: {statistics.median(took):.1f} ms of {[round(each, 1) for each in took]}")
    quarter, *_ = statistics.quantiles(took, n=4)
    assert quarter < FRAME_MILLISECONDS, "what else the machine does makes some longer, and none shorter"

    curve = loss_of(answers[-1])
    assert max(value for value in curve["maximum"] if value is not None) == PEAK
    assert curve["batch"][-1] > 0.99 * POINTS, "the middle of the last bucket"
    assert len(curve["batch"]) <= 1000, "the server has reduced it"
    assert len(answers[-1].body()) < 200_000
    assert height_at(chart, PEAK_AT / curve["batch"][-1]) > 0.85, "the peak is in the picture"
    assert height_at(chart, 0.6) < 0.2, "what is elsewhere is low beside it"
    keep(screen, "many-points")


def loss_of(answer: Response) -> dict[str, Any]:
    """Return the curve of the loss as the page got it."""
    (curve,) = [each for each in answer.json() if each["name"] == "loss"]
    return dict(curve)
