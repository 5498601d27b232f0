"""Runs of a kernel's own in JupyterLab, where no master runs: in the panel, with a page; stopped with their kernel."""

from __future__ import annotations

import re

import pytest
from browser_parts import Keep, Lab, Opened, Screen, number_in, wait_until
from playwright.sync_api import Locator, expect
from training_notebook import training_cells, write_notebook
from view_parts import open_tab, page_of, state_of

from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow

PRINTS = "print('loss at batch', batch_idx)"
HERE = "experiment = det.experimental.create(Line, config, local=True)"


def row(screen: Screen, name: str) -> Locator:
    """Return the row of an experiment in the panel."""
    return screen.open_panel().locator(f'[data-experiment-id="{name}"]')


def open_local(screen: Screen, name: str) -> Locator:
    """Open the page of a local run from the panel."""
    row(screen, name).click()
    return page_of(screen, name)


@pytest.mark.long
def test_a_run_of_a_kernel_is_listed_has_a_page_and_is_stopped_with_its_kernel(
    lab_alone: Lab, opened: Opened, keep: Keep
) -> None:
    screen = opened(lab_alone)
    definition, config, _ = training_cells("in the kernel", extra=PRINTS)
    screen.open(write_notebook(lab_alone.root / "here.ipynb", definition, config, HERE))
    screen.run(0, 1)
    screen.start(2)
    is_listed_and_has_a_page(screen, keep)
    is_stopped_with_its_kernel(screen, keep)

    assert read_runtime(Home(lab_alone.home)) is None, "no master was started"


def is_listed_and_has_a_page(screen: Screen, keep: Keep) -> None:
    """Look at a run that goes on, in the panel and on its page."""
    listed = row(screen, "local-1")
    expect(listed).to_contain_text("in the kernel")
    expect(listed.locator(".det-Row-number")).to_have_text("local-1")
    expect(listed.locator(".det-Row-state")).to_contain_text("Running")
    expect(screen.open_panel()).to_contain_text("No master is running: only runs of this machine's own are listed.")
    keep(screen, "local-panel")
    page = open_local(screen, "local-1")
    expect(state_of(page)).to_have_text("Running")
    expect(page.locator(".det-chart-title > span")).to_have_text(["error", "loss"])
    log = open_tab(page, "Logs").get_by_role("log", name="Log lines")
    expect(log).to_contain_text(re.compile(r"loss at batch \d+"))
    overview = open_tab(page, "Overview")
    batches = overview.locator("dt:text-is('Batches') + dd")
    batch = number_in(batches.inner_text())
    wait_until(lambda: number_in(batches.inner_text()) > batch, "the progress moves while the kernel is busy")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    keep(screen, "local-page")


def is_stopped_with_its_kernel(screen: Screen, keep: Keep) -> None:
    """Restart the kernel in the middle: the run is stopped, and says why."""
    [kernel] = screen.lab.request("GET", "api/kernels").json()
    assert screen.lab.request("POST", f"api/kernels/{kernel['id']}/restart").ok
    page = page_of(screen, "local-1")
    expect(state_of(page)).to_have_text("Stopped")
    # Jupyter interrupts a kernel before it ends it, so that the run may have ended by itself in time.
    reason = re.compile(
        r"Stopped: (its kernel was restarted|interrupted \(by .* restart of its kernel\)).* \d+ of 100000\."
    )
    expect(page.locator(".det-exp-notice")).to_have_text(reason)
    expect(row(screen, "local-1").locator(".det-Row-state")).to_contain_text("Stopped")
    expect(row(screen, "local-1").locator(".det-Row-problem")).to_have_text(reason)
    keep(screen, "local-stopped")
    # The view below the cell asks the server, as the kernel that fed it is gone.
    screen.page.get_by_role("tab", name="here.ipynb").click()
    view = screen.page.locator(".jp-Notebook .det-view")
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    expect(view.locator(".det-failure")).to_have_text(reason)
    expect(view).not_to_contain_text("The kernel that showed this has ended.")
    keep(screen, "local-stopped-view")
