"""The Submit button of JupyterLab: the document as the front end has it, and a dialog that says what is sent."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest
from browser_parts import Keep, Lab, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from training_notebook import write_notebook
from view_parts import accept, open_dialog, page_of, read

pytestmark = pytest.mark.slow

IMPORTS = """
import numpy as np
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial
"""

TRIAL = """
class Sum(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def _loader(self):
        x = torch.tensor(np.loadtxt("numbers.csv", delimiter=",", dtype="float32"))
        return DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)

    def build_training_data_loader(self):
        return self._loader()

    def build_validation_data_loader(self):
        return self._loader()

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}
"""

CONFIG = """
config = {
    "name": "as saved",
    "hyperparameters": {"global_batch_size": 8},
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 40}},
    "max_restarts": 0,
}
"""

TWO_SLOTS = '"resources": {"slots_per_trial": 2},\n    "max_restarts"'
CREATE = "experiment = det.experimental.create(Sum, config)"
NUMBERS = "\n".join(",".join(str((7 * row + column) % 10 / 10) for column in range(4)) for row in range(32))
SECRET = 'api_key = "sk-proj-4f9aT7yQ2mXw8ZbN1cVd6RkHs3PgLe0U"'


def notebook(lab: Lab, name: str, *cells: str) -> Path:
    """Write a notebook that trains on a data file beside it, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=lab.root))
    (folder / "numbers.csv").write_text(NUMBERS)
    return write_notebook(folder / f"{name}.ipynb", *(cells or (IMPORTS, TRIAL, CONFIG, CREATE)))


def retype(screen: Screen, number: int, text: str) -> None:
    """Replace the text of a cell, as a user does; nothing is saved."""
    screen.cell(number).locator(".cm-content").click()
    screen.page.keyboard.press("Control+a")
    screen.page.keyboard.insert_text(text.strip())


def remarks(dialog: Locator, heading: str) -> list[str]:
    """Return what stands under a heading."""
    group = dialog.locator(".det-Submit-remarks", has_text=heading)
    return group.locator("li").all_text_contents()  # folded ones, too


def test_the_notebook_is_sent_as_it_stands_and_completes_in_the_panel(
    screen: Screen, lab: Lab, master: MasterAnswers, keep: Keep
) -> None:
    before = len(master.get("/experiments"))
    path = notebook(lab, "sent")
    name = f"as typed {path.parent.name[-4:]}"  # another one if the test is tried again, on the same master
    numbers = f"{NUMBERS}\n0.1,0.2,0.3,{len(name) + before / 10}"
    (path.parent / "numbers.csv").write_text(numbers)
    data = f"data = {str(path.parent / 'numbers.csv')!r}\n"
    screen.open(path)
    panel = screen.open_panel()
    screen.run(0)
    retype(screen, 0, IMPORTS + data)
    retype(screen, 1, TRIAL.replace('"numbers.csv"', "data"))
    retype(screen, 2, CONFIG.replace("as saved", name).replace('"max_restarts"', TWO_SLOTS))
    dialog = open_dialog(screen)
    expect(dialog).to_contain_text("Submit sent.ipynb")
    expect(dialog.locator(".det-Submit-line")).to_have_text(
        "Runs 4 cells in a process of their own and submits the training."
    )
    expect(dialog).to_contain_text("Submits create(), code cell 4, line 1, after every cell above.")
    assert remarks(dialog, "Not what last ran") == [
        "Code cell 1: text differs from what last ran",
        "Code cells 2 to 4: not run yet",
    ]
    assert remarks(dialog, "Warnings") == []

    slots = dialog.get_by_label("Slots for each trial")
    expect(slots).to_have_value("")  # as the configuration says
    expect(accept(dialog)).to_be_enabled()
    slots.fill("3")
    expect(dialog.get_by_role("alert")).to_have_text("The master has 2 slots: choose at most 2.")
    expect(accept(dialog)).to_be_disabled()
    slots.fill("1")
    expect(accept(dialog)).to_be_enabled()
    expect(dialog.locator(".det-Submit-problems")).to_have_count(0)
    keep(screen, "submit-dialog")
    for _ in range(2):  # the second one neither cancels nor sends again
        screen.page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    row = panel.locator(".det-Row", has_text=name)
    expect(row.locator(".det-Row-state")).to_contain_text("Completed")
    [experiment] = [one for one in master.get("/experiments") if one["name"] == name]
    config = master.get(f"/experiments/{experiment['id']}")["config"]
    assert config["resources"]["slots_per_trial"] == 1
    assert float(row.locator(".det-Row-metric").inner_text()) == pytest.approx(experiment["best_validation"], rel=1e-2)
    assert "as saved" in path.read_text(), "the file is as it was"
    page_of(screen, experiment["id"])
    assert len(master.get("/experiments")) == before + 1


@pytest.mark.long
def test_what_stands_in_the_way_is_said_with_its_cell(
    screen: Screen, lab: Lab, master: MasterAnswers, keep: Keep
) -> None:
    before = len(master.get("/experiments"))
    keyed = TRIAL.replace("self.context = context", "self.context, self.key = context, api_key")
    screen.open(notebook(lab, "refused", f"{IMPORTS}{SECRET}", keyed, CONFIG, CREATE))
    dialog = open_dialog(screen)
    accept(dialog).click()
    problem = dialog.locator(".det-Submit-problems li")
    expect(problem.locator("strong")).to_have_text("Code cell 1, line 5")
    expect(problem).to_contain_text("api_key holds a string that looks like a secret")
    expect(problem).to_contain_text("os.environ")
    keep(screen, "submit-secret")
    again = {
        "syntax": (2, f"{CONFIG}def", "name 'config' is not defined"),
        "field": (2, CONFIG.replace("max_length", "max_lenght"), "searcher.max_lenght"),
        "values": (2, CONFIG.replace("40", "-40"), "searcher.max_length"),
    }
    for number, text, told in again.values():
        dialog.locator(".jp-Dialog-footer .jp-mod-reject").click()
        retype(screen, 0, IMPORTS)
        retype(screen, 1, TRIAL)
        retype(screen, number, text)
        dialog = open_dialog(screen)
        accept(dialog).click()
        expect(dialog.locator(".det-Submit-problems li").first).to_contain_text(told)
    dialog.locator(".jp-Dialog-footer .jp-mod-reject").click()
    retype(screen, 2, CONFIG)
    expect(accept(open_dialog(screen))).to_be_enabled()
    assert len(master.get("/experiments")) == before


@pytest.mark.long
def test_here_trains_in_the_kernel_by_the_palette(screen: Screen, lab: Lab, master: MasterAnswers, keep: Keep) -> None:
    before = len(master.get("/experiments"))
    after = "print(experiment.id[:6], experiment.state.name, sorted(experiment.history))"
    unneeded = "# det-skip\nprint('this is not needed')"
    path = notebook(
        lab, "here", unneeded, IMPORTS + SECRET, TRIAL + "# api_key", CONFIG, f"{CREATE}\nexperiment", after
    )
    screen.open(path)
    screen.execute("apputils:activate-command-palette")
    screen.page.keyboard.type("Submit notebook")
    screen.page.keyboard.press("Enter")
    dialog = read(screen)
    dialog.get_by_label("Here, in the kernel of this notebook").check()
    expect(dialog).to_contain_text("Runs 4 cells of this notebook in its kernel")
    expect(dialog.get_by_label("Slots for each trial")).to_be_disabled()
    keep(screen, "submit-here")
    accept(dialog).click()
    dialog.wait_for(state="detached")
    expect(screen.cell(4)).to_contain_text("Experiment local-")
    assert screen.prompt(0) == "[ ]:", "a cell that is tagged det-skip is not run"
    screen.run(5)
    expect(screen.cell(5).locator(".jp-OutputArea-output")).to_have_text("local- COMPLETED ['loss', 'val_error']")
    assert len(master.get("/experiments")) == before, "the master knows nothing of it"


@pytest.mark.long
def test_the_notebooks_own_interpreter_reads_and_runs_it(
    screen: Screen, lab: Lab, master: MasterAnswers, tmp_path: Path
) -> None:
    interpreter = other_environment(tmp_path / "an-environment-of-its-own")
    argv = [str(interpreter), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Other", "language": "python"}
    folder = lab.data / "kernels" / "other"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(spec))
    computed = CONFIG.replace('"as saved"', "pathlib.Path(sys.prefix).name")
    path = notebook(lab, "other", IMPORTS, TRIAL, f"import pathlib, sys\n{computed}", CREATE)
    written = json.loads(path.read_text())
    written["metadata"]["kernelspec"] = {"name": "other", "display_name": "Other", "language": "python"}
    path.write_text(json.dumps(written))
    screen.open(path)
    dialog = open_dialog(screen)
    accept(dialog).click()
    dialog.wait_for(state="detached")
    row = screen.open_panel().locator(".det-Row", has_text="an-environment-of-its-own")
    expect(row).to_be_visible()
    wait_until(lambda: "Completed" in row.inner_text(), "it completes there")
    [found] = [one for one in master.get("/experiments") if one["name"] == "an-environment-of-its-own"]
    bundle = master.get(f"/bundles/{found['bundle_id']}")
    assert bundle["interpreter"]["executable"] == str(interpreter)


def other_environment(folder: Path) -> Path:
    """Make an environment that has the packages of ours, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    interpreter = folder / "bin" / "python"
    where = [str(interpreter), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = subprocess.run(where, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    Path(own, "ours.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return interpreter
