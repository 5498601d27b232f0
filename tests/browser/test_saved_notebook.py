"""What stays: a saved notebook shows the last state as a picture and a line, in JupyterLab and where no kernel runs."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser_masters import kill_master, start_master
from browser_parts import Keep, Lab, Opened, Screen, wait_until
from playwright.sync_api import Browser, Locator, Page, expect
from training_notebook import CONFIG, CREATE, training_cells, write_notebook
from view_parts import batches_of

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

VIEW = "application/vnd.det-native.view+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# What a reader of a notebook must never see: how Python or a widget library speaks of an object.
REPR = re.compile(r"<(\w+\.)*\w+ object at|<Experiment|<Trial|LiveWidget\(|Loading widget|Error displaying|not found")
LARGEST_DISPLAY = 200_000
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def viewer(browser: Browser) -> Iterator[Page]:
    """A browser without a network, as a reader of a file may have it."""
    context = browser.new_context(offline=True, viewport={"width": 1100, "height": 900})
    yield context.new_page()
    context.close()


def bundle_of(path: Path, cell: int, output: int = -1) -> dict[str, Any]:
    """Return what a saved notebook has below a cell, by MIME type; before it may be the report of what was sent."""
    return dict(nbformat.read(path, 4).cells[cell].outputs[output]["data"])


def saved_with(screen: Screen, path: Path, cell: int, text: str, state: str, output: int = -1) -> dict[str, Any]:
    """Save the notebook until what is below a cell has `text` in its line, and `state`; return it.

    The line may say the end before the state does: then all of it is renewed once more.
    """

    def fits() -> dict[str, Any] | None:
        screen.save()
        found = bundle_of(path, cell, output)
        said = text in found["text/plain"] and found[VIEW]["state"] == state
        return found if said and "image/png" in found else None

    found: dict[str, Any] = wait_until(fits, f"the saved notebook says {text!r}")
    return found


def convert(path: Path, folder: Path) -> Path:
    """Convert a notebook to HTML, as from a shell."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(folder), str(path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return folder / f"{path.stem}.html"


def shows_last_state(output: Locator, *words: str) -> None:
    """Check that an output shows a line with `words` and a picture that really is one, and no object's repr."""
    for word in words:
        expect(output).to_contain_text(word)
    picture = output.locator("img").first
    expect(picture).to_be_visible()
    wait_until(lambda: picture.evaluate("image => image.complete && image.naturalWidth > 300"), "the picture is loaded")
    assert not REPR.search(output.inner_text())


def check_saved(path: Path, bundle: dict[str, Any], displays: int = 1) -> None:
    """Check what is in the file: a line, a picture, of a reasonable size, and no state of a widget."""
    assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    assert len(bundle["text/plain"].splitlines()) == 1
    assert not REPR.search(bundle["text/plain"] + bundle["text/html"])
    assert path.stat().st_size < displays * LARGEST_DISPLAY
    assert "widgets" not in nbformat.read(path, 4).metadata


FINISHED, GOING_ON = 2, 4  # the cells of the notebook below


def train_and_save(screen: Screen, lab: Lab, name: str) -> Path:
    """Have a notebook trained and saved while one experiment has ended and one goes on; its kernel is gone then."""
    cells = (*training_cells("finished", batches=60), CONFIG.format(name="going-on", batches=100_000), CREATE)
    path = write_notebook(lab.root / f"{name}.ipynb", *cells)
    screen.open(path)
    screen.run_all(5)
    screen.show(FINISHED)  # a view that is scrolled away is not drawn
    expect(screen.cell(FINISHED).locator(".det-view .det-badge")).to_have_text("Completed")
    screen.show(GOING_ON)
    expect(screen.cell(GOING_ON).locator(".det-chart canvas").first).to_be_visible()
    going_on = saved_with(screen, path, GOING_ON, "as of 20", "ACTIVE")
    finished = saved_with(screen, path, FINISHED, "completed", "COMPLETED")
    assert re.search(r"; det\.attach\(\d+\) shows what it does now\)", going_on["text/plain"])
    assert re.fullmatch(r"Experiment \d+: finished: completed, best error [\d.e-]+", finished["text/plain"])
    for bundle in (finished, going_on):
        check_saved(path, bundle, displays=2)
    lab.end_kernels()
    return path


@pytest.mark.long
def test_a_finished_training_stays_after_its_kernel_and_one_that_goes_on_is_live(
    screen: Screen, lab: Lab, keep: Keep
) -> None:
    path = train_and_save(screen, lab, "stays")
    screen.open(path)
    screen.show(FINISHED)
    shows_last_state(screen.cell(FINISHED).locator(".jp-OutputArea-output").last, "finished", "Completed")
    keep(screen, "saved-and-reopened")
    screen.show(GOING_ON)
    view = screen.cell(GOING_ON).locator(".det-view").first
    expect(view.locator(".det-badge")).to_have_text("Running")
    shown = batches_of(view)
    wait_until(lambda: batches_of(view) > shown, "the view moves")
    wait_until(lambda: lab.kernel_states() == ["idle"], "a new one, which knows nothing of it, is ready")

    # Its end is saved without the kernel.
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    stopped = saved_with(screen, path, GOING_ON, ": stopped", "CANCELED")
    check_saved(path, stopped, displays=2)
    assert "as of" not in stopped["text/plain"] + stopped["text/html"]


@pytest.mark.soak
def test_a_saved_notebook_is_read_without_a_master_a_server_or_trust(
    screen: Screen, lab: Lab, home: Home, viewer: Page, tmp_path: Path, keep: Keep
) -> None:
    path = train_and_save(screen, lab, "is-read")
    # Where nobody can be asked, it says so; and goes on by itself, as soon as something else of the page is answered.
    kill_master(home)
    screen.open(path)
    screen.show(GOING_ON)
    output = screen.cell(GOING_ON).locator(".jp-OutputArea-output").last
    notice = output.get_by_role("status").filter(has_text="As it was saved, not live: No master")
    expect(notice).to_be_visible()
    shows_last_state(output, "going-on", "as of 20")
    expect(screen.cell(FINISHED).get_by_text("not live")).to_have_count(0)
    keep(screen, "saved-without-a-master")
    panel = screen.open_panel()
    panel.get_by_role("button", name="Start a master").wait_for()
    start_master(home)
    expect(output.locator(".det-view .det-badge")).to_have_text("Running")
    expect(notice).to_have_count(0)

    viewer.goto(convert(path, tmp_path).as_uri())
    shows_last_states(viewer.locator("body"))
    assert not REPR.search(viewer.locator("body").inner_text())

    # Somebody else's JupyterLab does not trust it: shown without anything that could run.
    other = nbformat.read(path, 4)
    other.cells[GOING_ON].outputs[-1]["data"]["text/html"] += "<script>document.title = 'owned'</script>"
    untrusted = lab.root / "untrusted.ipynb"
    nbformat.write(other, untrusted)
    screen.open(untrusted)
    screen.show(GOING_ON)
    shows_last_state(screen.cell(GOING_ON).locator(".jp-OutputArea-output").last, "going-on", "as of 20")
    assert screen.page.title() != "owned"


def shows_last_states(body: Locator) -> None:
    """Check the two experiments of the notebook, wherever it is read."""
    outputs = body.locator(".jp-OutputArea-output:has(img)")
    for number, words in enumerate((["finished", "Completed", "best error"], ["going-on", "Running", "as of 20"])):
        outputs.nth(number).scroll_into_view_if_needed()
        shows_last_state(outputs.nth(number), *words)


@pytest.mark.soak
def test_an_experiment_that_had_ended_and_one_executed_without_a_front_end(
    opened: Opened, lab: Lab, home: Home, viewer: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(home.path))
    cells = (*training_cells("headless", batches=60), "_ = experiment.wait()", "experiment", "experiment.trials[0]")
    path = write_notebook(lab.root / "headless.ipynb", *cells)
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "notebook", "--inplace", str(path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    live, _, ended, trial = (bundle_of(path, cell) for cell in (2, 3, 4, 5))
    for bundle in (live, ended, trial):
        assert WIDGET_VIEW not in bundle
        assert base64.b64decode(bundle["image/png"]).startswith(PNG)
    check_saved(path, live, displays=3)
    assert "completed" in live["text/plain"], "what was shown while it went on is renewed at its end"

    viewer.goto(convert(path, tmp_path).as_uri())
    outputs = viewer.locator(".jp-OutputArea-output:has(img)")
    whole = ["headless", "Completed"]  # of create(), of wait(), and the handle's own
    for number, words in enumerate((whole, whole, whole, ["Trial", "60/60"])):
        shows_last_state(outputs.nth(number), *words)
    assert not REPR.search(viewer.locator("body").inner_text())

    screen = opened(lab)
    screen.open(path)
    for cell, word in ((2, "Completed"), (4, "Completed"), (5, "60/60")):
        shows_last_state(screen.cell(cell).locator(".jp-OutputArea-output").last, word)
