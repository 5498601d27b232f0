"""The live view under the cell: it moves while a trial trains, acts, and comes through reloads and losses."""

from __future__ import annotations

import os
import signal

import pytest
from browser_masters import start_master
from browser_parts import Keep, Lab, Screen, number_in, training_cells, wait_until, write_notebook
from playwright.sync_api import Locator, expect

from det_native.client.session import Session
from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow


def view_of(screen: Screen, cell: int = 2) -> Locator:
    """Return the live view under a cell, once it has a chart."""
    view = screen.cell(cell).locator(".det-view").first
    chart = view.locator(".det-chart canvas").first

    def is_drawn() -> bool:
        screen.show(cell)  # again and again: JupyterLab scrolls too, when it has loaded
        return chart.is_visible()

    wait_until(is_drawn, "the view has a chart", 90)
    return view


def batches(view: Locator) -> int:
    """Return the batch that the view shows."""
    text = view.locator(".det-facts").inner_text()
    return number_in(text.partition("batch")[2])


def moves(view: Locator) -> None:
    """Wait until the view shows progress, which it does where it can be seen."""
    first = batches(view)

    def has_moved() -> bool:
        view.scroll_into_view_if_needed()
        return batches(view) > first

    wait_until(has_moved, "the view moves", 90)


def drawn(view: Locator) -> str:
    """Return the first chart as drawn."""
    return str(view.locator("canvas").first.evaluate("canvas => canvas.toDataURL()"))


@pytest.fixture
def training(screen: Screen, lab: Lab, request: pytest.FixtureRequest) -> Screen:
    """A notebook that has submitted an experiment and shows it."""
    name = request.node.name.replace("[", "-").replace("]", "")[:40]
    notebook = write_notebook(lab.root / f"{name}.ipynb", *training_cells(name), "print('the kernel', 6 * 7)")
    screen.open(notebook)
    screen.run_all(3)
    return screen


def test_the_chart_moves_while_a_trial_trains_and_the_kernel_is_free(training: Screen, keep: Keep) -> None:
    view = view_of(training)
    expect(view.locator(".det-badge")).to_have_text("Running")
    before = drawn(view)
    moves(view)
    wait_until(lambda: drawn(view) != before, "the chart is drawn anew", 30)
    training.run(3)
    expect(training.cell(3).locator(".jp-OutputArea-output")).to_contain_text("the kernel 42")
    titles = view.locator(".det-chart-title").all_inner_texts()
    assert any("error" in title for title in titles)
    assert any("loss" in title for title in titles)
    expect(view.locator("[role=progressbar]")).to_be_visible()
    expect(view.locator(".det-facts")).to_contain_text("left")
    keep(training, "live-view")


def test_pause_resume_and_stop(training: Screen, master: Session) -> None:
    view = view_of(training)
    experiment = number_in(view.locator(".det-title").inner_text())
    view.get_by_role("button", name="Pause").click()
    expect(view.locator(".det-badge")).to_have_text("Paused")
    assert master.get(f"/experiments/{experiment}")["state"] == "PAUSED"
    view.get_by_role("button", name="Resume").click()
    expect(view.locator(".det-badge")).to_have_text("Running")
    moves(view)
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Keep running").click()
    expect(view.locator(".det-badge")).to_have_text("Running")
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    assert master.get(f"/experiments/{experiment}")["state"] == "CANCELED"


def test_actions_work_while_a_cell_runs(training: Screen, lab: Lab, master: Session) -> None:
    view = view_of(training)
    training.cell(3).locator(".cm-content").click()
    training.page.keyboard.press("Control+a")
    training.page.keyboard.type("import threading; threading.Event().wait(3600)")
    training.page.keyboard.press("Control+Enter")
    wait_until(lambda: "*" in training.prompt(3), "the cell runs")
    moves(view)
    view.get_by_role("button", name="Pause").click()
    expect(view.locator(".det-badge")).to_have_text("Paused")
    assert "*" in training.prompt(3)


def test_the_view_comes_back_after_a_reload_of_the_page(training: Screen) -> None:
    view = view_of(training)
    moves(view)
    shown = batches(view)
    training.save()
    training.page.reload()
    training.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    again = view_of(training)
    assert batches(again) >= shown
    moves(again)


def test_attach_shows_it_after_a_restart_of_the_kernel(training: Screen, lab: Lab) -> None:
    view = view_of(training)
    experiment = number_in(view.locator(".det-title").inner_text())
    lab.end_kernels()
    attached = write_notebook(lab.root / "attached.ipynb", f"import det_native as det\ndet.attach({experiment})")
    training.open(attached)
    training.run(0)
    again = view_of(training, 0)
    assert number_in(again.locator(".det-title").inner_text()) == experiment
    moves(again)


def test_a_lost_master_is_said_and_its_return_leaves_no_gap(
    training: Screen, home: Home, master: Session, keep: Keep
) -> None:
    view = view_of(training)
    experiment = number_in(view.locator(".det-title").inner_text())
    moves(view)
    runtime = read_runtime(home)
    assert runtime is not None
    os.kill(runtime.pid, signal.SIGKILL)
    notice = view.locator(".det-notice", has_text="Connection lost since")
    expect(notice.first).to_be_visible(timeout=30_000)
    shown = batches(view)
    keep(training, "live-view-lost")
    start_master(home)
    expect(notice.first).to_be_hidden(timeout=60_000)
    wait_until(lambda: batches(view) > shown, "the view goes on", 60)
    trial = master.get(f"/experiments/{experiment}/trials")[0]["id"]
    rows = [row["batch"] for row in master.get(f"/trials/{trial}/metrics", kind="training", limit=10_000)]
    assert rows == list(range(1, len(rows) + 1)), "no batch is missing or there twice"


def test_an_exception_of_the_users_is_shown_with_its_cell(screen: Screen, lab: Lab, keep: Keep) -> None:
    cells = training_cells("broken", extra="assert batch_idx < 5, 'on <b>purpose</b>'")
    screen.open(write_notebook(lab.root / "broken.ipynb", *cells))
    screen.run_all(3)
    view = screen.cell(2).locator(".det-view").first
    failure = view.locator(".det-failure")
    expect(failure).to_be_visible(timeout=60_000)
    expect(failure).to_contain_text("AssertionError")
    expect(failure).to_contain_text("on <b>purpose</b>")
    expect(failure).to_contain_text("1")
    expect(view.locator(".det-badge")).to_have_text("Failed")
    keep(screen, "live-view-failed")
