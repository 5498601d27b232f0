"""The row of a trial under a cell: pointed at or walked to, its curves lie over the others; the notebook stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_parts import Keep, Lab, Opened
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit
from training_notebook import write_notebook
from view_parts import section

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

RATES = [0.01, 0.1]


@pytest.fixture
def search(home: Home, tmp_path: Path) -> int:
    """A search of two trials that both train, as many as the master has slots."""
    rate = {"type": "categorical", "vals": RATES}
    config = described("rates", batches=20_000, pace=0.05, rate=rate, searcher="grid")
    [experiment] = submit(home, tmp_path, config)
    return experiment


@pytest.mark.long
def test_rows_highlight_and_their_keys_are_not_the_notebooks(
    opened: Opened, lab: Lab, master: MasterAnswers, search: int, keep: Keep
) -> None:
    screen = opened(lab)
    screen.open(write_notebook(lab.root / "rows.ipynb", "import det_native as det", f"det.attach({search})", "1 + 1"))
    screen.run_all(2)
    view = screen.cell(1).locator(".det-view").first
    legend = view.locator(".det-legend", has_text="trial").first
    rows = section(view, "Trials").locator("tbody tr")
    expect(rows).to_have_count(2)
    # By default the best one is first, which another may become at any time.
    section(view, "Trials").get_by_role("button", name="Trial", exact=True).click()
    expect(view.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    one, two = (f"trial {row.locator('td').first.inner_text()}" for row in rows.all())
    expect(legend).to_contain_text(two)  # both trials have reported
    first = legend.locator(".det-legend-entry").first

    rows.nth(1).click()
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    screen.page.mouse.move(0, 0)
    expect(first).to_contain_text(two)
    log = section(view, "Log")
    expect(log.locator("summary")).to_have_text(f"Log of {two}")
    ids = {trial["number"]: trial["id"] for trial in master.get(f"/experiments/{search}/trials")}
    expect(log.locator("select")).to_have_value(str(ids[int(two.removeprefix("trial "))]))
    assert styles_of(log.locator("select")) == styles_of(view.locator(".det-actions button").last)
    swatches = view.locator(".det-swatch")  # of validation in the chart of the error, of training in that of the loss
    looks = swatches.evaluate_all("all => all.map(each => [each.style.borderTopColor, each.className])")
    assert len({colour for colour, _ in looks}) == 2
    for colour in {colour for colour, _ in looks}:
        assert {name for found, name in looks if found == colour} == {"det-swatch", "det-swatch det-dashed"}, looks
    active = screen.page.locator(".jp-Notebook-cell.jp-mod-active")
    expect(active).to_have_count(1)
    before = active.evaluate("cell => [...cell.parentElement.children].indexOf(cell)")

    screen.page.keyboard.press("ArrowUp")
    expect(rows.nth(0)).to_be_focused()
    expect(first).to_contain_text(two)  # what is only walked over changes no order
    screen.page.keyboard.press("Enter")
    expect(first).to_contain_text(one)
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    expect(rows.nth(0)).to_be_focused()
    keep(screen, "highlighted-trial")
    expect(log.locator("summary")).to_have_text(f"Log of {one}")
    screen.page.keyboard.press("Space")
    expect(view.locator("[aria-selected=true]")).to_have_count(0)
    assert active.evaluate("cell => [...cell.parentElement.children].indexOf(cell)") == before
    expect(screen.page.locator(".jp-Notebook.jp-mod-editMode")).to_have_count(0)


def styles_of(element: Locator) -> list[str]:
    """Return what makes a button and a chooser look alike."""
    names = ["borderTopColor", "borderRadius", "color", "fontSize", "fontFamily"]
    found: list[str] = element.evaluate("(element, names) => names.map(name => getComputedStyle(element)[name])", names)
    return found
