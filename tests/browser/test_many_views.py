"""Seven live views and the panel in one page: one event stream for all, and connections left for JupyterLab's own work.

A browser opens six connections to a server. Once each view held a stream of its own: the seventh got none, and a save
waited for ever.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_parts import Keep, Lab, Opened, Screen, number_in, wait_until, write_notebook
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

VIEWS = 7
SAVED_WITHIN_SECONDS = 5.0
# Tall enough that every view is seen: one that is not asks for nothing.
HEIGHT = 5000


@pytest.fixture
def trainings(home: Home, tmp_path: Path) -> list[int]:
    """Two experiments that train: as many as the master has slots."""
    return submit(home, tmp_path, *(described(f"view {n}", batches=20_000, pace=0.1, rate=0.01) for n in range(2)))


def drawn(view: Locator) -> list[str]:
    """Return the charts of a view as drawn."""
    pictures: list[str] = view.locator(".det-chart canvas").evaluate_all("all => all.map(each => each.toDataURL())")
    return pictures


def batches(view: Locator) -> int:
    """Return the batch that a view tells."""
    return number_in(view.locator(".det-facts").inner_text().partition("batch")[2])


def all_move(screen: Screen, views: list[Locator]) -> None:
    """Wait until every chart of every view is drawn anew and every view tells more batches."""
    screen.cell(0).scroll_into_view_if_needed()  # running a cell scrolls to the next one
    before = [(batches(view), drawn(view)) for view in views]
    for number, (view, (batch, pictures)) in enumerate(zip(views, before, strict=True), 1):
        wait_until(lambda v=view, b=batch: batches(v) > b, f"view {number} counts on", 30)  # type: ignore[misc]
        wait_until(
            lambda v=view, p=pictures: not set(p) & set(drawn(v)),  # type: ignore[misc]
            f"the charts of view {number} move",
            30,
        )


def seconds_to_save(screen: Screen) -> float:
    """Change the notebook and save it; return how long the browser waited, for a connection and for the answer."""
    screen.cell(VIEWS + 1).locator(".cm-content").click()
    screen.page.keyboard.press("Control+End")
    screen.page.keyboard.insert_text("  # changed")
    answer = screen.ask_to_save()
    assert answer.ok
    answer.finished()
    return float(answer.request.timing["responseEnd"]) / 1000


def test_seven_views_and_the_panel_share_one_stream_and_leave_jupyterlab_its_connections(
    opened: Opened, lab: Lab, trainings: list[int], keep: Keep
) -> None:
    screen = opened(lab, height=HEIGHT)
    streams = screen.watch_streams()
    shown = [f"det.attach({trainings[number % 2]})" for number in range(VIEWS)]
    path = write_notebook(lab.root / "seven.ipynb", "import det_native as det", *shown, "print('the kernel', 6 * 7)")
    screen.open(path)
    screen.open_panel()
    screen.run_all(VIEWS + 1)
    views = [screen.cell(number).locator(".det-view").first for number in range(1, VIEWS + 1)]
    for view in views:
        expect(view.locator(".det-chart canvas")).to_have_count(2, timeout=60_000)
        expect(view.locator(".det-badge")).to_have_text("Running")
    all_move(screen, views)
    assert streams() == 1, "the views and the panel share a stream"

    took = seconds_to_save(screen)
    print(f"saved in {took:.1f} s beside {VIEWS} live views")
    assert took < SAVED_WITHIN_SECONDS
    assert "# changed" in path.read_text()
    screen.run(VIEWS + 1)
    expect(screen.cell(VIEWS + 1).locator(".jp-OutputArea-output")).to_contain_text("the kernel 42")
    all_move(screen, views)
    expect(screen.page.locator(".det-Row", has_text="Running")).to_have_count(2)
    assert streams() == 1
    keep(screen, "seven-views")
