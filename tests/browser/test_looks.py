"""What a user looks at: the dialog that keeps its place, what is queued, tabs, trials in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser_parts import Keep, Lab, Screen
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit
from training_notebook import write_notebook
from view_parts import accept, open_tab, page_of

from det_native.schema.home import Home

pytestmark = pytest.mark.slow


def place(dialog: Locator, *selectors: str) -> list[Any]:
    """Return where parts of the dialog stand."""
    return [dialog.locator(selector).first.bounding_box() for selector in selectors]


@pytest.mark.soak
def test_the_dialog_opens_at_once_and_keeps_its_place(screen: Screen, lab: Lab, keep: Keep) -> None:
    parts = (".det-Choice", ".det-Submit-line", ".jp-Dialog-footer")
    screen.open(write_notebook(lab.root / "looks.ipynb", "print('hello')"))
    screen.page.route("**/det-native/api/notebook-runs/describe", lambda _: None)  # never answered
    screen.page.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name="Submit").click()
    dialog = screen.page.locator(".det-SubmitDialog")
    expect(dialog.locator(".det-Submit-line")).to_contain_text("the master of this machine")
    expect(accept(dialog)).to_be_focused()
    before = place(dialog, *parts)
    dialog.get_by_label("On the cluster").check()
    dialog.get_by_label("Only test").check()
    keep(screen, "looks-dialog")
    assert place(dialog, *parts) == before, "nothing has moved"
    screen.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@pytest.mark.long
def test_what_is_queued_says_what_it_waits_for_and_tabs_have_numbers(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    rates = {"type": "categorical", "vals": [0.001, 0.1]}
    busy = described("busy", batches=20_000, pace=0.05, rate=rates, searcher="grid")
    [search, queued] = submit(home, tmp_path, busy, described("queued", batches=100))
    screen.open()
    panel = screen.open_panel()
    row = panel.locator(f'[data-experiment-id="{queued}"]')
    waits = f"waits for 1 of 2 slots: #{search} has them"
    expect(row.locator(".det-Row-state")).to_contain_text("Queued")
    expect(row.locator(".det-Row-problem")).to_have_text(waits)
    expect(panel.locator(".det-Panel-master")).to_have_text("Master running · 2 of 2 slots busy")
    row.click()
    page = page_of(screen, queued)
    expect(page.locator(".det-exp-head [role=status]").first).to_have_text(f"Queued {waits}")
    expect(screen.page.locator(".lm-TabBar-tabLabel", has_text=f"#{queued} queued")).to_have_count(1)
    keep(screen, "looks-queued")

    other = panel.locator(f'[data-experiment-id="{search}"]')
    expect(other.locator(".det-Row-metricName")).to_have_text("↓ error")
    expect(other).to_have_attribute("title", re.compile("lower is better"))
    other.click()
    trials = open_tab(page_of(screen, search), "Trials")
    trials.get_by_role("button", name="Best error").click()
    expect(trials.locator("tbody tr").first).to_contain_text("0.1")
    trials.get_by_role("button", name="Best error").click()
    expect(trials.locator("tbody tr").first).to_contain_text("0.001")
    keep(screen, "looks-page")
    master.post(f"/experiments/{search}/kill")
    expect(row.locator(".det-Row-problem")).to_be_hidden()


def test_there_is_one_kernel_of_this_interpreter(lab: Lab) -> None:
    specs = lab.request("GET", "api/kernelspecs").json()["kernelspecs"]
    assert len({tuple(each["spec"]["argv"]) for each in specs.values()}) == len(specs), specs.keys()
