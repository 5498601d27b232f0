"""The compare page and the Search tab in a browser: a real master with searches that have ended."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe import violations
from browser_masters import start_master, stop_master
from finished_searches import fill
from playwright.sync_api import Page, expect

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]

TRIALS = 2000
# Draws 60 frames while an end of a filter is dragged up and down; returns how long each took, in milliseconds.
FRAMES = """async ([x, top, bottom]) => {
  const axis = document.elementFromPoint(x, (top + bottom) / 2);
  const send = (type, y) => axis.dispatchEvent(new PointerEvent(type, {
    bubbles: true, clientX: x, clientY: y, pointerId: 1, isPrimary: true
  }));
  axis.setPointerCapture = () => undefined;
  send('pointerdown', bottom);
  const times = [];
  let before = performance.now();
  for (let frame = 0; frame < 60; frame += 1) {
    send('pointermove', top + (bottom - top) * Math.abs(Math.sin(frame / 10)));
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - before);
    before = performance.now();
  }
  send('pointerup', (top + bottom) / 2);
  return times;
}"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a master that has four searches, 1 to 4; see ``fill``."""
    home = Home(tmp_path_factory.mktemp("searches-home"))
    assert fill(home, TRIALS) == [1, 2, 3, 4]
    start_master(home)
    yield home
    stop_master(home)


def go(page: Page, address: str) -> None:
    """Show an address of the workspace."""
    page.goto(f"{page.url.partition('#')[0]}#{address}")


def picture(page: Page, name: str) -> None:
    """Keep a picture, in the folder that ``DET_SCREENSHOTS`` names."""
    folder = os.environ.get("DET_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_a_search_is_analysed(master_page: Page) -> None:
    page = master_page
    go(page, "/experiments/2/search")
    importance = page.get_by_role("figure", name="Importance of hyperparameters")
    expect(importance).to_contain_text("by fANOVA, over 24 trials")
    for name in ("Best so far", "Parallel coordinates", "Scatter", "Pareto front", "learning_rate", "Contour", "Rank"):
        expect(page.get_by_role("figure", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("figure", name="While the trials train")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^val_loss over dropout, a point for each"))).to_be_visible()
    assert violations(page) == []
    page.get_by_role("slider", name="learning_rate, highest value shown").press("PageDown")
    expect(page.get_by_text(re.compile(r"of 24 trials, filtered by learning_rate"))).to_be_visible()
    page.get_by_role("button", name=re.compile("^dropout, axis 1 of 8")).press("ArrowRight")
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^dropout, axis 2 of 8"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"filtered by learning_rate"))).to_be_visible()
    for ending in ("CSV", "PNG", "SVG"):
        page.get_by_role("button", name="More about Scatter").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=ending).click()
        assert download.value.suggested_filename == f"Scatter.{ending.lower()}"
    picture(page, "search")


@pytest.mark.soak
def test_two_thousand_trials_are_filtered_while_an_axis_is_dragged(master_page: Page) -> None:
    page = master_page
    go(page, "/experiments/1/search")
    expect(page.get_by_text(f"{TRIALS:,} of {TRIALS:,} trials")).to_be_visible()
    axis = page.locator(".det-parallel-axis").first
    axis.scroll_into_view_if_needed()
    box = axis.bounding_box()
    assert box is not None
    times = page.evaluate(FRAMES, [box["x"] + box["width"] / 2, box["y"] + 30, box["y"] + box["height"] - 30])
    middle = sorted(times)[len(times) // 2]
    print(f"{TRIALS} trials in parallel coordinates: a frame takes {middle:.0f} ms, the longest {max(times):.0f} ms")
    assert middle < 200  # two cores, shared, without a graphics card
    expect(page.get_by_text(re.compile(rf"of {TRIALS:,} trials, filtered by dropout"))).to_be_visible()


def test_a_phone_scrolls_tables_and_not_the_page(master_page: Page) -> None:
    page = master_page
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, "/compare/3,4,2")  # the best values, marked, are out of sight
    too_wide = "part => part.scrollWidth - part.clientWidth"
    for part in ("Table", "Charts", "Trials", "Configuration", "Code", "System"):
        page.get_by_role("link", name=part, exact=True).click()
        expect(page.locator(".det-compare-part .det-loading")).to_have_count(0)
        for what in ("html", ".det-main"):
            assert page.locator(what).evaluate(too_wide) <= 0, (part, what)
        picture(page, f"phone-compare-{part}")
    cluster = page.get_by_role("link", name="Cluster").bounding_box()
    actions = page.locator(".det-topactions").bounding_box()
    assert cluster is not None
    assert actions is not None
    assert cluster["x"] + cluster["width"] <= actions["x"]
    go(page, "/experiments?columns=name,last%3A" + "long_name_" * 1000)
    page.get_by_role("button", name="Filters, sorting and columns").click()
    page.get_by_role("button", name="Columns", exact=True).click()
    chooser = page.get_by_role("dialog", name="Columns")
    expect(chooser.get_by_role("button", name="Columns as they were")).to_be_visible()
    assert chooser.evaluate(too_wide) <= 0
    assert page.locator(".det-main").evaluate(too_wide) <= 0
    place = chooser.bounding_box()
    assert place is not None
    assert 0 <= place["x"] <= 390 - place["width"]
    picture(page, "phone-columns")


def test_odd_names_and_values_are_only_text(master_page: Page) -> None:
    page = master_page
    go(page, "/experiments/4/search")
    expect(page.get_by_role("figure", name="Parallel coordinates")).to_be_visible()
    expect(page.get_by_text("there are 3.")).to_be_visible()
    go(page, "/compare/4,2")
    expect(page.get_by_role("heading", name="Comparison of 2 experiments")).to_be_visible()
    assert page.locator(".det-app img").count() == 0
    assert page.title() != "executed"
    assert violations(page) == []


def test_experiments_are_compared(master_page: Page) -> None:
    page = master_page
    go(page, "/compare/2,3,99")
    expect(page.get_by_text("Experiment #99 is left out")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="val_loss"))
    expect(row.get_by_text("★")).to_have_count(1)
    assert violations(page) == []
    picture(page, "compare")
    for part in ("Charts", "Trials", "Configuration", "Code", "System"):
        page.get_by_role("link", name=part, exact=True).click()
        expect(page).to_have_url(re.compile(f"show={part.lower()}"))
        expect(page.locator(".det-compare-part .det-loading")).to_have_count(0)
        if part == "Charts":
            expect(page.get_by_role("figure", name="loss", exact=True)).to_be_visible()
        if part == "Code":
            expect(page.locator("ins", has_text="rate = 0.2")).to_be_visible()
            expect(page.get_by_text("torch: 2.13.0 → 2.12.0")).to_be_visible()
        assert violations(page) == [], part
    page.go_back()
    expect(page.locator("ins", has_text="rate = 0.2")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, "/compare/2,3")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
