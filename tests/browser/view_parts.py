"""Parts of the extension's views: the page of an experiment, the dialog of the Submit button."""

from __future__ import annotations

import re

from browser_parts import Screen, number_in
from playwright.sync_api import Locator, expect

_BATCH = re.compile(r"batch \d")


def open_dialog(screen: Screen) -> Locator:
    """Press Submit in the toolbar, and wait until the notebook has been read."""
    screen.page.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name="Submit").click()
    return read(screen)


def read(screen: Screen) -> Locator:
    """Return the dialog, once the notebook has been read."""
    dialog = screen.page.locator(".det-SubmitDialog")
    dialog.wait_for()
    expect(dialog.locator(".det-Spinner")).to_have_count(0)
    return dialog


def accept(dialog: Locator) -> Locator:
    """Return the button that sends."""
    return dialog.locator(".jp-Dialog-footer .jp-mod-accept")


def open_page(screen: Screen, experiment: int) -> Locator:
    """Open the page of an experiment from the panel."""
    screen.open_panel().locator(f'[data-experiment-id="{experiment}"]').click()
    page = screen.page.locator(".det-page:visible")
    expect(page.locator(".det-title")).to_have_text(f"Experiment {experiment}")
    return page


def batches_of(view: Locator) -> int:
    """Return the batch that a view or the page of an experiment tells: "12 % · batch 1,234 of 10,000"."""
    facts = view.locator(".det-facts")
    expect(facts).to_contain_text(_BATCH)  # not while one view takes the place of another
    return number_in(facts.inner_text().partition("batch")[2])


def section(page: Locator, title: str) -> Locator:
    """Return a part of the page by the beginning of its title."""
    summary = page.page.locator("summary", has_text=re.compile(f"^{title}"))
    return page.locator("details.det-section").filter(has=summary)


def type_into(screen: Screen, number: int, text: str) -> None:
    """Type into a cell."""
    screen.cell(number).locator(".cm-content").click()
    screen.page.keyboard.insert_text(text)
