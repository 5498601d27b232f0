"""Parts of the extension's views: the page of an experiment, the dialog of the Submit button."""

from __future__ import annotations

import re

from browser_parts import Screen, number_in
from playwright.sync_api import Locator, expect

_BATCH = re.compile(r"batch \d")


def open_dialog(screen: Screen) -> Locator:
    """Press Submit in the toolbar, and wait for the dialog and what it asks."""
    with screen.page.expect_response("**/notebook-runs/describe"):
        screen.page.locator(".jp-NotebookPanel-toolbar:visible").get_by_role("button", name="Submit").click()
    dialog = screen.page.locator(".det-SubmitDialog")
    dialog.wait_for()
    return dialog


def accept(dialog: Locator) -> Locator:
    """Return the button that sends."""
    return dialog.locator(".jp-Dialog-footer .jp-mod-accept")


def open_page(screen: Screen, experiment: int) -> Locator:
    """Open the page of an experiment from the panel."""
    screen.open_panel().locator(f'[data-experiment-id="{experiment}"]').click()
    return page_of(screen, experiment)


def page_of(screen: Screen, experiment: int | str) -> Locator:
    """Return the page of an experiment that is in front, once all is there."""
    page = screen.page.locator(f'.det-exp[data-experiment="{experiment}"]:visible')
    expect(page.locator(".det-tabs")).to_be_visible()
    return page


def open_tab(page: Locator, name: str) -> Locator:
    """Open a tab of the page of an experiment, and return what is in it."""
    page.locator(".det-tab").filter(has_text=re.compile(f"^{name}")).click()
    tab = page.locator(f'.det-exp-tab[data-tab="{name.lower()}"]')
    expect(tab).to_be_visible()
    return tab


def state_of(page: Locator) -> Locator:
    """Return the state in the head of the page of an experiment."""
    return page.locator(".det-exp-head .det-state").first


def load_checkpoint(row: Locator) -> None:
    """Load the first checkpoint of a table, or that of a row, into the notebook."""
    row.get_by_role("button", name="Actions for checkpoint").first.click()
    row.get_by_role("menuitem", name="Load into notebook").click()


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
