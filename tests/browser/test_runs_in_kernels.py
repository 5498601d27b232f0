"""A training in a kernel, in a JupyterLab without a master: listed, with a page, stopped with its kernel."""

from __future__ import annotations

import re

import pytest
from browser_parts import Keep, Lab, Opened, Screen, number_in, wait_until
from playwright.sync_api import Locator, expect
from training_notebook import training_cells, write_notebook
from view_parts import open_tab, page_of, state_of

pytestmark = pytest.mark.slow

PRINTS = "print('loss at batch', batch_idx)"
HERE = "experiment = det.experimental.create(Line, config, local=True)"


def row(screen: Screen) -> Locator:
    """Return the row of the only experiment in the panel."""
    return screen.open_panel().locator('[data-experiment-id="1"]')


@pytest.mark.long
def test_a_run_in_a_kernel_is_listed_has_a_page_and_is_stopped_with_its_kernel(
    lab_alone: Lab, opened: Opened, keep: Keep
) -> None:
    screen = opened(lab_alone)
    definition, config, _ = training_cells("trained here", extra=PRINTS)
    screen.open(write_notebook(lab_alone.root / "here.ipynb", definition, config, HERE))
    screen.run(0, 1)
    screen.start(2)
    is_listed_and_has_a_page(screen, keep)
    is_stopped_with_its_kernel(screen, keep)


def is_listed_and_has_a_page(screen: Screen, keep: Keep) -> None:
    """Look at a run that goes on, in the panel and on its page."""
    listed = row(screen)
    expect(listed).to_contain_text("trained here")
    expect(listed.locator(".det-Row-state")).to_contain_text("Running · in a kernel")
    keep(screen, "kernel-panel")
    listed.click()
    page = page_of(screen, 1)
    expect(state_of(page)).to_have_text("Running")
    expect(page.locator(".det-exp-head").get_by_text("in a kernel")).to_be_visible()
    expect(page.locator(".det-chart-title > span")).to_have_text(["error", "loss"])
    log = open_tab(page, "Logs").get_by_role("log", name="Log lines")
    expect(log).to_contain_text(re.compile(r"loss at batch \d+"))
    overview = open_tab(page, "Overview")
    batches = overview.locator("dt:text-is('Batches') + dd")
    batch = number_in(batches.inner_text())
    wait_until(lambda: number_in(batches.inner_text()) > batch, "the progress moves while the kernel is busy")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    keep(screen, "kernel-page")


def is_stopped_with_its_kernel(screen: Screen, keep: Keep) -> None:
    """Restart the kernel in the middle: the run is stopped, on its page, in the panel and below its cell."""
    [kernel] = screen.lab.request("GET", "api/kernels").json()
    assert screen.lab.request("POST", f"api/kernels/{kernel['id']}/restart").ok
    expect(state_of(page_of(screen, 1))).to_have_text("Stopped")
    expect(row(screen).locator(".det-Row-state")).to_contain_text("Stopped")
    keep(screen, "kernel-stopped")
    screen.page.get_by_role("tab", name="here.ipynb").click()
    view = screen.page.locator(".jp-Notebook .det-view")
    view.evaluate("view => view.scrollIntoView()")  # what was printed before the master was there stands above it
    expect(view.locator(".det-badge")).to_have_text("Stopped")
    expect(view).not_to_contain_text("The kernel that showed this has ended.")
    keep(screen, "kernel-stopped-view")
