"""Make the README's pictures of JupyterLab: ``.venv/bin/python tools/screenshots.py`` writes them into docs/images.

A real master, a real JupyterLab and a real training, in an empty home; it takes about a minute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from browser_masters import start_master, stop_master  # noqa: E402
from browser_parts import (  # noqa: E402
    CHROMIUM_ARGUMENTS,
    Lab,
    Screen,
    chromium,
    wait_until,
)
from playwright.sync_api import sync_playwright  # noqa: E402
from training_notebook import write_notebook  # noqa: E402

from det_native.schema.home import Home  # noqa: E402

IMPORTS = """
import torch
from sklearn.datasets import load_digits
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32) / 16
digits = torch.utils.data.TensorDataset(images, torch.tensor(labels))
train, validation = torch.utils.data.random_split(digits, [1500, 297], torch.Generator().manual_seed(1))
"""

TRIAL = """
class Digits(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        hidden, dropout = context.get_hparam("hidden"), torch.nn.Dropout(0.4)
        layers = torch.nn.Linear(64, hidden), torch.nn.ReLU(), dropout, torch.nn.Linear(hidden, 10)
        self.model = context.wrap_model(torch.nn.Sequential(*layers))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), context.get_hparam("lr")))

    def build_training_data_loader(self):
        return DataLoader(train, batch_size=32, shuffle=True)

    def build_validation_data_loader(self):
        return DataLoader(validation, batch_size=99)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        scores = self.model(batch[0])
        accuracy = (scores.argmax(1) == batch[1]).float().mean()
        return {"loss": torch.nn.functional.cross_entropy(scores, batch[1]), "accuracy": accuracy}
"""

SEARCH = """
config = {
    "name": "digits",
    "hyperparameters": {"global_batch_size": 32, "hidden": 64, "lr": det.Categorical([0.0005, 0.002, 0.01])},
    "searcher": {"name": "grid", "metric": "accuracy", "smaller_is_better": False,
                 "max_length": {"epochs": %d}},
    "records_per_epoch": 1500,
    "min_validation_period": {"epochs": 1},
}
experiment = det.experimental.create(Digits, config)
experiment
"""


def main() -> int:
    """Write the pictures; return the exit status."""
    browser_path = chromium()
    if browser_path is None:
        print("No chromium here: run tools/system_packages.sh as root.", file=sys.stderr)
        return 1
    images = ROOT / "docs" / "images"
    with tempfile.TemporaryDirectory(prefix="det-pictures-") as folder:
        home = Home(Path(folder) / "home")
        start_master(home)
        try:
            lab = Lab(Path(folder) / "lab", home.path)
            try:
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(executable_path=browser_path, args=CHROMIUM_ARGUMENTS)
                    _take(Screen(browser, lab, width=1360, height=850), lab, images)
                    browser.close()
            finally:
                lab.close()
        finally:
            stop_master(home)
    return 0


def _take(screen: Screen, lab: Lab, images: Path) -> None:
    screen.open(write_notebook(lab.root / "digits.ipynb", IMPORTS, TRIAL, SEARCH % 12, SEARCH % 400))
    panel = screen.open_panel()
    screen.run_all(3)
    rows = panel.locator(".det-Row")
    wait_until(lambda: "Completed" in rows.first.inner_text(), "the first search ends", 120)
    screen.run(3)
    view = screen.cell(3).locator(".det-view").first
    view.locator(".det-chart canvas").first.wait_for()
    wait_until(lambda: rows.first.locator(".det-Row-metric").inner_text() > "0.95", "it has learned", 120)
    view.scroll_into_view_if_needed()
    view.locator(".det-badge").scroll_into_view_if_needed()
    screen.page.screenshot(path=str(images / "live.png"))
    rows.last.click()
    page = screen.page.locator(".det-Page")
    page.locator(".det-chart canvas").first.wait_for()
    page.get_by_role("button", name="Load checkpoint").first.wait_for()
    screen.page.screenshot(path=str(images / "experiment.png"))


if __name__ == "__main__":
    sys.exit(main())
