"""A page that is reloaded in mid-training: its view lives while the kernel is busy, and what is saved is renewed."""

from __future__ import annotations

import pytest
from browser_parts import Keep, Lab, Screen, wait_until
from playwright.sync_api import Locator, expect
from test_saved_notebook import check_saved, saved_with, shows_last_state
from training_notebook import training_cells, write_notebook
from view_parts import batches_of

pytestmark = pytest.mark.slow

VIEW, WAITING = 2, 3


@pytest.mark.long
def test_the_view_is_live_while_a_cell_waits_and_the_end_is_saved(screen: Screen, lab: Lab) -> None:
    path = write_notebook(lab.root / "reloaded.ipynb", *training_cells("reloaded"), "experiment.wait()")
    screen.open(path)
    screen.run_all(3)
    screen.show(VIEW)
    expect(screen.cell(VIEW).locator(".det-chart canvas").first).to_be_visible()
    screen.cell(WAITING).locator(".cm-content").click()
    screen.page.keyboard.press("Control+Enter")
    wait_until(lambda: "*" in screen.prompt(WAITING), "the cell waits")
    screen.save()
    screen.page.reload()
    screen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    screen.show(VIEW)
    view = screen.cell(VIEW).locator(".det-view").first
    expect(view.locator(".det-chart canvas").first).to_be_visible()
    assert lab.kernel_states() == ["busy"]
    shown = batches_of(view)
    wait_until(lambda: batches_of(view) > shown, "the view moves")

    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    wait_until(lambda: lab.kernel_states() == ["idle"], "the cell has ended")
    check_saved(path, saved_with(screen, path, VIEW, "stopped", "CANCELED"))
    lab.end_kernels()
    screen.open(path)
    screen.show(VIEW)
    shows_last_state(screen.cell(VIEW).locator(".jp-OutputArea-output").last, "Stopped")


@pytest.mark.long
def test_a_run_of_the_kernels_own_comes_back_with_its_curve_and_goes_on(screen: Screen, lab: Lab, keep: Keep) -> None:
    definition, config, _ = training_cells("reloaded here")
    here = "experiment = det.experimental.create(Line, config, local=True)"
    path = write_notebook(lab.root / "reloaded-here.ipynb", definition, config, here)
    screen.open(path)
    screen.run(0, 1)
    screen.start(VIEW)
    view = drawn_view(screen)
    screen.save()
    before = batches_of(view)
    screen.page.reload()
    screen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    view = drawn_view(screen)
    shown = batches_of(view)
    assert shown >= before, "what was trained before the reload is not lost"
    charts = view.locator(".det-chart-title > span")
    expect(charts).to_have_text(["error", "loss"])
    wait_until(lambda: batches_of(view) > shown, "the view goes on while the kernel trains")
    expect(view.get_by_role("button", name="Pause")).to_be_hidden()
    keep(screen, "reloaded-here")

    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    check_saved(path, saved_with(screen, path, VIEW, "stopped", "CANCELED"))


def drawn_view(screen: Screen) -> Locator:
    """Return the view below the training cell, once it has drawn a curve."""
    view = screen.cell(VIEW).locator(".det-view").first

    def drawn() -> bool:
        screen.show(VIEW)
        return view.locator(".det-chart canvas").first.is_visible()

    wait_until(drawn, "the view has a chart")
    expect(view.locator(".det-badge")).to_have_text("Running")
    return view
