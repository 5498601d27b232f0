"""The side panel of JupyterLab: a live list of experiments for 250 pixels, by mouse and by keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser_parts import Keep, Screen, wait_until
from click.testing import CliRunner
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit, wait_for_end
from view_parts import page_of, state_of

import det_native as det
from det_native.client.command import cli
from det_native.client.connect import connect
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

LONG_NAME = "an experiment with a name that is a good deal longer than any panel is wide"
BROKEN = "broken, and listed so"
STATES = {"done": "Completed", "failed": "Failed", "paused": "Paused"}


@pytest.fixture(scope="module")
def seeded(home: Home, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """An experiment with a long name that has completed, and one that has failed."""
    ids = submit(
        home,
        tmp_path_factory.mktemp("seeded"),
        described(LONG_NAME, batches=20),
        described(BROKEN, batches=20, broken=True),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        wait_for_end(connect(start=False), *ids)
    return ids


def row_of(screen: Screen, experiment: int) -> Locator:
    """Return the row of an experiment."""
    return screen.page.locator(f'.det-Row[data-experiment-id="{experiment}"]')


def percent(row: Locator) -> int:
    """Return the progress that a row tells; -1 while it tells none."""
    found = re.search(r"(\d+) %", row.locator(".det-Row-state").inner_text())
    return int(found.group(1)) if found else -1


def metric(row: Locator) -> float:
    """Return the best metric that a row tells; infinite while there is none."""
    text = row.locator(".det-Row-metric").inner_text()
    return float(text) if text else float("inf")


def choose(screen: Screen, row: Locator, item: str) -> None:
    """Choose from the context menu of a row."""
    row.click(button="right")
    screen.page.get_by_role("menuitem", name=item, exact=True).click()


def fits(element: Locator) -> bool:
    """Whether nothing of a text is cut off."""
    return bool(element.evaluate("element => element.scrollWidth <= element.clientWidth + 1"))


def test_a_running_experiment_moves_in_the_list_and_is_acted_on_from_there(
    seeded: list[int], screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    screen.open()
    panel = screen.open_panel()
    expect(row_of(screen, seeded[0])).to_be_visible()
    [running] = submit(home, tmp_path, described("running", batches=4000, pace=0.02, rate=0.01))
    row = row_of(screen, running)
    expect(row).to_be_visible()
    assert panel.locator(".det-Row").first.get_attribute("data-experiment-id") == str(running), "the newest is first"
    expect(row.locator(".det-Row-state")).to_contain_text("Running")
    expect(row.locator(".det-Row-metricName")).to_have_text("↓ error")
    shown = percent(row), metric(row)
    assert metric(row) > 0
    wait_until(lambda: percent(row) > shown[0], "the progress moves")
    wait_until(lambda: metric(row) < shown[1], "the best metric moves")
    assert row.locator(".det-bar-fill").bounding_box()["width"] > 0  # type: ignore[index]
    expect(row.locator(".det-Row-state")).to_contain_text("left")
    expect(panel.locator(".det-Panel-master")).to_have_text("Master running · 1 of 2 slots busy")
    keep(screen, "panel-running")

    row.click()
    page_of(screen, running)
    tabs = screen.page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel", has_text="running")
    expect(tabs).to_have_text([f"#{running} running"])
    row.click()
    expect(tabs).to_have_count(1)

    choose(screen, row, "Pause")
    expect(row.locator(".det-Row-state")).to_contain_text("Paused")
    assert master.get(f"/experiments/{running}")["state"] == "PAUSED"
    row.click(button="right")
    for word, shown_now in (("Open", 1), ("Pause", 0), ("Resume", 1), ("Stop", 1), ("Kill", 1), ("Activate", 0)):
        expect(screen.page.get_by_role("menuitem", name=word, exact=True)).to_have_count(shown_now)
    screen.page.get_by_role("menuitem", name="Resume", exact=True).click()
    expect(row.locator(".det-Row-state")).to_contain_text("Running")
    choose(screen, row, "Stop")
    screen.page.locator(".jp-Dialog").get_by_role("button", name="Cancel").click()
    expect(row.locator(".det-Row-state")).to_contain_text("Running")
    choose(screen, row, "Stop")
    screen.page.locator(".jp-Dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(row.locator(".det-Row-state")).to_contain_text("Stopped")
    page = page_of(screen, running)
    expect(state_of(page)).to_have_text("Stopped")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    listed = CliRunner().invoke(cli, ["e", "list", "--state", "stopped"]).output
    assert re.search(rf"^ *{running} +running +Stopped ", listed, re.MULTILINE), "the command has the same word"
    assert det.attach(running).state == "Stopped"
    row.click(button="right")
    for word, shown_now in (("Open", 1), ("Pause", 0), ("Resume", 0), ("Stop", 0), ("Kill", 0)):
        expect(screen.page.get_by_role("menuitem", name=word, exact=True)).to_have_count(shown_now)
    screen.page.keyboard.press("Escape")
    assert master.get(f"/experiments/{running}")["state"] == "CANCELED"
    expect(panel.locator(".det-Panel-master")).to_have_text("Master running · 0 of 2 slots busy")


@pytest.mark.long
def test_states_are_told_in_250_pixels_and_reached_by_keyboard(
    seeded: list[int], screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    finished, broken = seeded
    [paused] = submit(home, tmp_path, described("paused", batches=4000, pace=0.02))
    master.post(f"/experiments/{paused}/pause")
    screen.open()
    panel = screen.open_panel()
    expect(row_of(screen, finished)).to_be_visible()
    _all_fits(panel)
    told = {"done": row_of(screen, finished), "failed": row_of(screen, broken), "paused": row_of(screen, paused)}
    for shape, row in told.items():
        expect(row.locator(".det-Row-state")).to_contain_text(STATES[shape])
        expect(row).to_have_attribute("data-shape", shape)
        assert STATES[shape] in (row.get_attribute("aria-label") or "")
    expect(row_of(screen, broken).locator(".det-Row-problem")).to_have_text("ValueError: broken on purpose")
    name = row_of(screen, finished).locator(".det-Row-name")
    beginning, end = name.locator("span").all()
    assert not fits(beginning)
    assert beginning.evaluate("element => getComputedStyle(element).textOverflow") == "ellipsis"
    assert fits(end)
    assert name.evaluate("element => getComputedStyle(element).whiteSpace") == "pre", "a space at the cut is seen"
    assert LONG_NAME.endswith(end.inner_text())
    assert LONG_NAME in (row_of(screen, finished).get_attribute("title") or "")
    keep(screen, "panel-states")

    keyboard = screen.page.keyboard
    screen.execute("det-native:show-experiments")
    listed = [experiment["id"] for experiment in master.get("/experiments")]  # rows out of view are not in the page
    expect(panel.locator(".det-List")).to_be_focused()
    keyboard.press("Home")  # the active experiment stays active where newer ones have come above it
    for key, expected in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", len(listed) - 1), ("Home", 0)):
        keyboard.press(key)
        expect(row_of(screen, listed[expected])).to_have_attribute("aria-selected", "true")
        expect(panel.locator(".det-List")).to_have_attribute("aria-activedescendant", f"det-row-{listed[expected]}")
    expect(panel.locator('.det-Row[aria-selected="true"]')).to_have_count(1)
    keyboard.press("Shift+F10")
    expect(screen.page.get_by_role("menuitem", name="Open", exact=True)).to_be_visible()
    keyboard.press("Escape")
    expect(panel.locator(".det-List")).to_be_focused()
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    page_of(screen, listed[1])

    screen.execute("apputils:activate-command-palette")
    keyboard.type("Open experiment")
    keyboard.press("Enter")
    dialog = screen.page.locator(".jp-Dialog")
    dialog.locator("select").select_option(label=dialog.locator("option", has_text=BROKEN).inner_text())
    dialog.get_by_role("button", name="Ok").click()
    page = page_of(screen, broken)
    expect(page.locator(".det-exp-failure")).to_contain_text("at batch 6")
    screen.set_theme(dark=True)
    keep(screen, "panel-states-dark")


def _all_fits(panel: Locator) -> None:
    """Check that at its usual width the panel cuts off no state and no number, and needs no scrolling sideways.

    The names of metrics of other tests' experiments may be longer than there is room.
    """
    box = panel.bounding_box()
    assert box is not None
    assert 230 <= box["width"] <= 260
    assert fits(panel.locator(".det-List"))
    for part in panel.locator(".det-Row-state, .det-Row-metric").all():
        assert fits(part), part.inner_text()
