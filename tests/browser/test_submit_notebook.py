"""The Submit button of JupyterLab: a notebook runs as a whole in the background, or goes on in its open kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from browser_parts import Keep, Lab, Opened, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from training_notebook import training_cells, write_notebook
from view_parts import accept, open_dialog, page_of

from det_native.notebook_runs.folders import list_runs
from det_native.notebook_runs.start import stop_run
from det_native.schema.home import Home
from det_native.schema.notebook_runs import NotebookRun

pytestmark = pytest.mark.slow

FIGURE = """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.title(title)
plt.show()
"""
GATE = """
import pathlib, time
pathlib.Path("begun").touch()
while not pathlib.Path("gate").exists():
    time.sleep(0.1)
print("the end")
"""


def folder_of(lab: Lab, name: str) -> Path:
    """Return an empty folder for a notebook, a new one if the test is tried again."""
    number = len(list(lab.root.glob(f"{name}-*")))
    folder = lab.root / f"{name}-{number}"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _no_run_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stop the runs that a test has left."""
    homes = [request.getfixturevalue(name) for name in ("home", "empty_home") if name in request.fixturenames]
    yield
    for home in homes:
        for run in list_runs(home):
            if not run.is_ended:
                stop_run(home, run.id)


def runs_of(home: Home, notebook: Path) -> list[NotebookRun]:
    """Return the runs of a notebook."""
    return list_runs(home, str(notebook))


def ended(home: Home, notebook: Path) -> NotebookRun:
    """Return the one run of a notebook, once it has ended."""
    wait_until(lambda: all(run.is_ended for run in runs_of(home, notebook)), "the run ends")
    [run] = runs_of(home, notebook)
    return run


def row_of(screen: Screen, run: NotebookRun) -> Locator:
    """Return the row of a run in the panel."""
    return screen.open_panel().locator(".det-Run", has=screen.page.get_by_title(f"Run {run.id}: {run.path}"))


def printed(path: Path) -> str:
    """Return what the cells of a notebook have printed."""
    notebook = nbformat.read(path, as_version=4)
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


def test_the_whole_notebook_runs_in_the_background_and_is_opened_executed(
    screen: Screen, lab: Lab, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    folder = folder_of(lab, "whole")
    name = folder.name
    definition, config, create = training_cells(name, batches=120, pace=0.05)
    parameters = nbformat.v4.new_code_cell('title = "as written"\nbatches = 40', metadata={"tags": ["parameters"]})
    path = write_notebook(folder / "train.ipynb", definition, config, f"{create}.wait()", FIGURE, "print(title)")
    document = nbformat.read(path, as_version=4)
    document.cells.insert(0, parameters)
    nbformat.write(document, path)
    screen.open(path)
    screen.execute("kernelmenu:shutdown")
    wait_until(lambda: not lab.kernel_states(), "no kernel runs")
    screen.cell(5).locator(".cm-content").click()
    screen.page.keyboard.press("Control+End")
    screen.page.keyboard.insert_text("\nprint('typed and not saved')")

    dialog = open_dialog(screen)
    line = dialog.locator(".det-Submit-line")
    expect(line).to_contain_text("Runs 6 cells of train.ipynb in a fresh kernel, Python 3 (ipykernel); ")
    expect(line).to_contain_text("with the master of this machine, slots as configured.")
    expect(dialog.get_by_label("In the open kernel instead")).to_be_hidden()
    slots = dialog.get_by_label("Slots for each trial")
    slots.fill("3")
    expect(dialog.locator(".det-Choice-problem")).to_have_text("The master has 2 slots: choose at most 2.")
    slots.fill("1")
    expect(dialog.get_by_label("batches")).to_have_value("40")
    dialog.get_by_label("title").fill(name)
    keep(screen, "submit-dialog")
    for _ in range(2):  # the second one neither cancels nor begins another run
        screen.page.keyboard.press("Enter")
    dialog.wait_for(state="detached")

    wait_until(lambda: runs_of(home, path), "the run begins")
    [run] = runs_of(home, path)
    row = row_of(screen, run)
    expect(row.locator(".det-Run-state")).to_have_text("Running · cell 5 of 7")
    link = row.locator(".det-Run-experiments button")
    expect(link).to_have_count(1)
    keep(screen, "submit-running")
    link.click()
    page = page_of(screen, int(link.inner_text().removeprefix("#")))
    expect(row.locator(".det-Run-state")).to_have_text("Completed · 7 cells")
    run = ended(home, path)
    assert (run.state, run.error, run.notes) == ("COMPLETED", "", [])
    [number] = run.experiments
    assert link.inner_text() == f"#{number}"
    assert master.get(f"/experiments/{number}")["config"]["resources"]["slots_per_trial"] == 1
    assert printed(Path(run.executed)).endswith(f"{name}\ntyped and not saved\n")
    assert f"Experiment {number}: {name}: completed" in Path(run.executed).read_text(), "the view has its last state"
    assert "typed and not saved" in path.read_text(), "the notebook was saved first"
    assert not lab.kernel_states(), "it runs beside the server's kernels"
    expect(page.locator(".det-exp-notebook")).to_be_visible()  # without a reload

    row.get_by_role("button", name="Open the executed notebook").click()
    copy = screen.page.locator(".jp-NotebookPanel:visible")
    expect(screen.page.get_by_role("tab", name=f"train (experiment {number}).ipynb")).to_be_visible()
    figure = copy.locator(".jp-RenderedImage img[src^='data:image/png']")
    figure.scroll_into_view_if_needed()
    expect(figure).to_be_visible()
    assert (folder / f"train (experiment {number}).ipynb").is_file()
    keep(screen, "submit-executed")

    screen.execute("application:close")
    screen.open_panel().locator(f'[data-experiment-id="{number}"]').click(button="right")
    screen.page.get_by_role("menuitem", name="Open executed notebook").click()
    expect(figure).to_be_visible()

    link.click()
    page = page_of(screen, int(number))
    notebook = page.locator(".det-exp-notebook")
    with screen.page.expect_download() as download:
        notebook.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "downloaded.ipynb")
    assert (tmp_path / "downloaded.ipynb").read_bytes() == Path(run.executed).read_bytes()
    notebook.get_by_role("button", name="Open").click()
    expect(copy.locator(".jp-Cell").first).to_be_visible()
    assert [each.name for each in folder.glob("train (*")] == [f"train (experiment {number}).ipynb"]


def test_the_open_kernel_runs_what_has_changed_and_all_below(screen: Screen, lab: Lab, home: Home, keep: Keep) -> None:
    path = write_notebook(folder_of(lab, "open") / "open.ipynb", "a = 1", "b = a + 1", "c = a + b", "print('c is', c)")
    screen.open(path)
    screen.run(0, 1)
    screen.cell(1).locator(".cm-content").click()
    screen.page.keyboard.press("Control+a")
    screen.page.keyboard.insert_text("b = a + 10")
    dialog = open_dialog(screen)
    dialog.get_by_label("In the open kernel instead").check()
    line = dialog.locator(".det-Submit-line")
    expect(line).to_have_text(
        "Runs cells 2 to 4 in the open kernel: from the first that has changed or has not run yet."
    )
    expect(dialog.get_by_label("Slots for each trial")).to_be_disabled()
    keep(screen, "submit-open-kernel")
    accept(dialog).click()
    dialog.wait_for(state="detached")
    expect(screen.cell(3).locator(".jp-OutputArea-output")).to_have_text("c is 12")
    assert [screen.prompt(number) for number in range(4)] == ["[1]:", "[3]:", "[4]:", "[5]:"]

    screen.save()
    screen.open(path, reset=False)  # the page forgets, the kernel does not
    dialog = open_dialog(screen)
    dialog.get_by_label("In the open kernel instead").check()
    expect(line).to_contain_text("there is nothing to run")
    screen.page.keyboard.press("Escape")
    assert runs_of(home, path) == []


def test_a_run_goes_on_without_the_browser(opened: Opened, lab: Lab, home: Home) -> None:
    folder = folder_of(lab, "closed")
    path = write_notebook(folder / "closed.ipynb", *training_cells(folder.name, batches=20), GATE)
    screen = opened(lab)
    screen.open(path)
    accept(open_dialog(screen)).click()
    wait_until((folder / "begun").exists, "its last cell begins")
    screen.close()
    (folder / "gate").touch()
    run = ended(home, path)
    assert run.state == "COMPLETED"
    assert printed(Path(run.executed)).endswith("the end\n")
    later = opened(lab)
    later.open()
    expect(row_of(later, run).locator(".det-Run-state")).to_have_text("Completed · 4 cells")


def test_a_run_goes_on_without_the_jupyter_server(lab_alone: Lab, empty_home: Home, opened: Opened) -> None:
    folder = folder_of(lab_alone, "killed")
    path = write_notebook(folder / "killed.ipynb", "import os\nprint(os.getppid())", GATE)
    screen = opened(lab_alone)
    screen.open(path)
    accept(open_dialog(screen)).click()
    wait_until((folder / "begun").exists, "its last cell begins")
    lab_alone.kill()
    (folder / "gate").touch()
    run = ended(empty_home, path)
    assert run.state == "COMPLETED"
    assert printed(Path(run.executed)).endswith("the end\n")


def test_a_run_is_stopped_in_the_panel(screen: Screen, lab: Lab, home: Home, keep: Keep) -> None:
    folder = folder_of(lab, "stopped")
    path = write_notebook(folder / "stopped.ipynb", "x = 1", GATE)
    screen.open(path)
    dialog = open_dialog(screen)
    expect(dialog.locator(".det-Submit-remarks")).to_be_hidden()
    accept(dialog).click()
    wait_until((folder / "begun").exists, "its last cell begins")
    [run] = runs_of(home, path)
    dialog = open_dialog(screen)
    expect(dialog.locator(".det-Submit-remarks")).to_contain_text(
        f"Run {run.id} of this notebook goes on (cell 2 of 2)"
    )
    screen.page.keyboard.press("Escape")
    row = row_of(screen, run)
    row.get_by_role("button", name="Stop run").click()
    screen.page.locator(".jp-Dialog").get_by_role("button", name="Stop").click()
    expect(row.locator(".det-Run-state")).to_have_text("Stopped · cell 2 of 2")
    expect(row.locator(".det-Run-problem")).to_contain_text("It was stopped.")
    keep(screen, "submit-stopped")
    assert len(runs_of(home, path)) == 1
