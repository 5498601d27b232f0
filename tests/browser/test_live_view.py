"""The live view under the cell: it moves while a trial trains, acts, and comes through reloads and losses."""

from __future__ import annotations

import pytest
from browser_masters import kill_master, start_master
from browser_parts import Keep, Lab, Screen, number_in, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from training_notebook import training_cells, write_notebook
from view_parts import batches_of

from det_native.schema.home import Home

pytestmark = pytest.mark.slow


def view_of(screen: Screen, cell: int = 2) -> Locator:
    """Return the live view under a cell, once it has a chart."""
    view = screen.cell(cell).locator(".det-view").first
    chart = view.locator(".det-chart canvas").first

    def is_drawn() -> bool:
        screen.show(cell)  # again and again: JupyterLab scrolls too, when it has loaded
        return chart.is_visible()

    wait_until(is_drawn, "the view has a chart")
    return view


def moves(view: Locator) -> None:
    """Wait until the view shows progress, which it does where it can be seen."""
    first = batches_of(view)

    def has_moved() -> bool:
        view.scroll_into_view_if_needed()
        return batches_of(view) > first

    wait_until(has_moved, "the view moves")


def drawn(view: Locator) -> str:
    """Return the first chart as drawn."""
    return str(view.locator("canvas").first.evaluate("canvas => canvas.toDataURL()"))


def training(screen: Screen, lab: Lab, name: str) -> Screen:
    """Open a notebook that submits an experiment and shows it: always the same, which the master has checked once."""
    screen.open(write_notebook(lab.root / f"{name}.ipynb", *training_cells(), "print('the kernel', 6 * 7)"))
    screen.run_all(3)
    return screen


@pytest.mark.long
def test_it_moves_and_acts_while_the_kernel_is_free_and_while_a_cell_runs(
    screen: Screen, lab: Lab, master: MasterAnswers, keep: Keep
) -> None:
    training(screen, lab, "moves")
    view = view_of(screen)
    badge = view.locator(".det-badge")
    expect(badge).to_have_text("Running")
    before = drawn(view)
    moves(view)
    wait_until(lambda: drawn(view) != before, "the chart is drawn anew")
    screen.run(3)
    expect(screen.cell(3).locator(".jp-OutputArea-output")).to_contain_text("the kernel 42")
    titles = view.locator(".det-chart-title").all_inner_texts()
    assert any("error" in title for title in titles)
    assert any("loss" in title for title in titles)
    expect(view.locator("[role=progressbar]")).to_be_visible()
    expect(view.locator(".det-facts")).to_contain_text("left")
    keep(screen, "live-view")

    screen.cell(3).locator(".cm-content").click()
    screen.page.keyboard.press("Control+a")
    screen.page.keyboard.type("import threading; threading.Event().wait(3600)")
    screen.page.keyboard.press("Control+Enter")
    wait_until(lambda: "*" in screen.prompt(3), "the cell runs")
    moves(view)
    experiment = number_in(view.locator(".det-title").inner_text())
    view.get_by_role("button", name="Pause").click()
    expect(badge).to_have_text("Paused")
    assert master.get(f"/experiments/{experiment}")["state"] == "PAUSED"
    assert "*" in screen.prompt(3)
    view.get_by_role("button", name="Resume").click()
    expect(badge).to_have_text("Running")
    screen.save()
    screen.page.reload()  # the kernel cannot tell of its widgets until the cell ends
    screen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    view = view_of(screen)
    badge = view.locator(".det-badge")
    moves(view)
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Keep running").click()
    expect(badge).to_have_text("Running")
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(badge).to_have_text("Stopped")
    assert master.get(f"/experiments/{experiment}")["state"] == "CANCELED"
    assert lab.kernel_states() == ["busy"]


@pytest.mark.long
def test_it_comes_through_a_reload_a_loss_of_the_master_and_a_restart_of_the_kernel(
    screen: Screen, lab: Lab, home: Home, master: MasterAnswers, keep: Keep
) -> None:
    training(screen, lab, "comes-through")
    view = view_of(screen)
    experiment = number_in(view.locator(".det-title").inner_text())
    moves(view)
    shown = batches_of(view)
    screen.save()
    screen.page.reload()
    screen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    view = view_of(screen)
    assert batches_of(view) >= shown
    moves(view)

    kill_master(home)
    notice = view.locator(".det-notice", has_text="Connection lost since")
    expect(notice.first).to_be_visible()
    shown = batches_of(view)
    keep(screen, "live-view-lost")
    screen.save()
    screen.page.reload()  # now nothing is known; what was saved is still something to look at
    screen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    screen.show(2)
    view = screen.cell(2).locator(".det-view").first
    notice = view.locator(".det-notice", has_text="No connection yet")
    expect(notice.first).to_be_visible()
    saved = screen.cell(2).locator(".det-Output").get_by_text("as of 20")
    expect(saved).to_be_visible()
    keep(screen, "live-view-lost-and-reloaded")
    start_master(home)
    expect(notice.first).to_be_hidden()
    expect(saved).to_have_count(0)
    wait_until(lambda: batches_of(view) > shown, "the view goes on")
    trial = master.get(f"/experiments/{experiment}/trials")[0]["id"]
    rows = [row["batch"] for row in master.get(f"/trials/{trial}/metrics", kind="training", limit=10_000)]
    assert rows == list(range(1, len(rows) + 1)), "no batch is missing or there twice"

    lab.end_kernels()
    screen.open(write_notebook(lab.root / "attached.ipynb", f"import det_native as det\ndet.attach({experiment})"))
    screen.run(0)
    attached = view_of(screen, 0)
    assert number_in(attached.locator(".det-title").inner_text()) == experiment
    moves(attached)
