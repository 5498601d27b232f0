"""The curve of a training is on the screen while its cell runs: in the kernel, and the quickstart's on the cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from browser_parts import Keep, Lab, Screen, wait_until
from playwright.sync_api import Locator, expect
from training_notebook import training_cells, write_notebook
from view_parts import batches_of

pytestmark = pytest.mark.slow

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"
# The code cells before section 4, without the quick check.
DATA, MODEL, CONFIG, HERE, CLUSTER = range(5)
IDS = ("quickstart-01", "quickstart-03", "quickstart-04", "quickstart-08", "quickstart-10")

# Looks at a cell while it runs: which batches its view told, of those that had a curve drawn, and what stood below it.
WATCH = """number => {
  const cell = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[number];
  const seen = (window.seen = { batches: [], others: [] });
  window.watching = setInterval(() => {
    if (!cell.querySelector('.jp-InputPrompt').textContent.includes('*')) return;
    cell.querySelector('.jp-OutputArea')?.scrollIntoView({ block: 'nearest' });
    const view = cell.querySelector('.det-view');
    const canvas = view?.querySelector('.det-chart canvas');
    const batch = /batch ([\\d,]+) of/.exec(view?.querySelector('.det-facts')?.textContent ?? '');
    const drawn = canvas && canvas.width > 100 && view.querySelector('.det-legend-entry b, .det-legend-entry');
    if (drawn && batch) seen.batches.push(Number(batch[1].replace(',', '')));
    cell.querySelectorAll('progress, .jp-RenderedText pre').forEach(each => seen.others.push(each.textContent));
  }, 50);
}"""


@pytest.fixture
def quickstart(screen: Screen, lab: Lab) -> Screen:
    notebook = nbformat.read(QUICKSTART, 4)
    by_id = {cell.id: cell for cell in notebook.cells}
    notebook.cells = [by_id[name] for name in IDS]
    path = lab.root / "quickstart.ipynb"
    nbformat.write(notebook, path)
    screen.open(path)
    screen.run(DATA, MODEL, CONFIG)
    return screen


def watched(screen: Screen, number: int) -> dict[str, Any]:
    """Run a cell to its end, and return what was seen below it meanwhile."""
    screen.page.evaluate(WATCH, number)
    screen.run(number)
    seen: dict[str, Any] = screen.page.evaluate("() => { clearInterval(window.watching); return window.seen; }")
    return seen


def outputs(screen: Screen, number: int) -> Locator:
    return screen.cell(number).locator(".jp-OutputArea-output")


@pytest.mark.long
def test_the_curve_is_seen_before_the_cell_ends_here_and_on_the_cluster(quickstart: Screen, keep: Keep) -> None:
    screen = quickstart
    here = watched(screen, HERE)
    assert here["batches"], "the curve is there while the cell runs"
    assert max(here["batches"]) >= 3, "a curve with a point for each batch"
    own = [text for text in here["others"] if "trained here" not in text]
    assert not own, "the view is all that is shown while it trains"
    view = screen.cell(HERE).locator(".det-view")
    expect(view.locator(".det-badge")).to_have_text("Completed")
    expect(view).to_have_count(1)
    # The line that said how far it was until a master had it is empty now.
    shown = [text for text in outputs(screen, HERE).all_inner_texts() if text.strip()]
    assert len(shown) == 2, shown
    expect(outputs(screen, HERE).last).to_contain_text("validation accuracy, trained here: 0.9")
    keep(screen, "quickstart-here")

    cluster = watched(screen, CLUSTER)
    assert cluster["batches"]
    assert max(cluster["batches"]) >= 3
    screen.show(CLUSTER)
    view = screen.cell(CLUSTER).locator(".det-view")
    expect(view.locator(".det-badge")).to_have_text("Completed")
    report, shown = outputs(screen, CLUSTER).all()  # neither wait() nor the value of the cell shows it once more
    expect(shown.locator(".det-view")).to_have_count(1)
    summary = report.locator("summary")
    expect(summary).to_have_text(re.compile(r"^Sent \d+ of \d+ cells, [\d.]+ kB: details$"))
    expect(report.locator("table")).to_be_hidden()
    summary.click()
    expect(report.locator("table")).to_be_visible()
    keep(screen, "quickstart-cluster")


def test_a_training_in_the_kernel_moves_in_its_view_while_its_cell_runs_and_is_stopped_there(
    screen: Screen, lab: Lab
) -> None:
    definition, config, _ = training_cells("in the kernel", pace=0.1)
    here = "experiment = det.experimental.create(Line, config, local=True)"
    screen.open(write_notebook(lab.root / "in-the-kernel.ipynb", definition, config, here))
    screen.run(0, 1)
    screen.start(2)
    view = drawn_view(screen, 2)
    shown = batches_of(view)
    wait_until(lambda: batches_of(view) > shown, "the view moves")
    expect(view.get_by_role("button", name="Pause")).to_be_hidden()
    assert "*" in screen.prompt(2)
    stop(view)
    wait_until(lambda: "*" not in screen.prompt(2), "the cell has ended")


@pytest.mark.soak
def test_a_training_here_is_stopped_in_its_view(quickstart: Screen) -> None:
    screen = quickstart
    screen.cell(HERE).locator(".cm-content").click()
    screen.page.keyboard.press("Control+Home")
    screen.page.keyboard.insert_text("config['searcher']['max_length'] = {'epochs': 5000}\n")
    screen.start(HERE)
    view = drawn_view(screen, HERE)
    expect(view.get_by_role("button", name="Pause")).to_be_hidden()
    assert "*" in screen.prompt(HERE)
    stop(view)
    wait_until(lambda: "*" not in screen.prompt(HERE), "the cell has ended")
    expect(outputs(screen, HERE).last).to_contain_text("validation accuracy, trained here")
    expect(view.locator("summary", has_text="Checkpoints (")).not_to_contain_text("(0)")


def drawn_view(screen: Screen, number: int) -> Locator:
    view = screen.cell(number).locator(".det-view")

    def drawn() -> bool:
        screen.show(number)
        return view.locator(".det-badge", has_text="Running").is_visible() and (
            view.locator(".det-chart canvas").first.is_visible()
        )

    wait_until(drawn, "the view has a chart")
    return view


def stop(view: Locator) -> None:
    view.get_by_role("button", name="Stop").click()
    expect(view.locator(".det-question")).to_contain_text("with a checkpoint")
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")
