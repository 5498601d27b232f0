"""Queue, cluster and models in a tab of JupyterLab, over a real master."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from axe import violations
from browser_parts import TOKEN, Screen
from master_answers import MasterAnswers
from playwright.sync_api import Page, expect
from scripted_experiments import described, submit, wait_for_end

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]


def go(screen: Screen, address: str) -> Page:
    """Open an address of the workspace."""
    page = screen.page
    page.goto(f"{screen.lab.base}lab?token={TOKEN}&reset&det={address}")
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    page.locator(".det-app .det-page-body").wait_for()
    return page


def picture(page: Page, name: str) -> None:
    """Keep pictures of a page, wide and narrow, if a folder is named."""
    folder = os.environ.get("DET_PICTURES_OF_PAGES")
    if folder:
        for width in (1280, 600, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{folder}/{name}-{width}.png")
        page.set_viewport_size({"width": 1280, "height": 900})


def test_who_waits_is_moved_given_a_priority_and_ended(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path
) -> None:
    configs = [
        described(name, batches=4000, pace=0.05, rate=0.01, resources={"slots_per_trial": 2})
        for name in ("holder", "second", "third")
    ]
    holder, second, third = (submit(home, tmp_path, config)[0] for config in configs)
    page = go(screen, "/queue")
    waiting = page.get_by_role("table", name="Waiting").locator("tbody tr")
    expect(waiting.first).to_contain_text("second")
    expect(waiting.first).to_contain_text(f"#{holder} has them")
    picture(page, "queue")
    assert violations(page, ".det-page-body") == []
    page.get_by_role("button", name="Move third up").focus()
    page.keyboard.press("Enter")
    expect(waiting.first).to_contain_text("third")
    assert master.get(f"/experiments/{third}")["config"]["resources"]["priority"] == 41
    page.get_by_label("Priority of second").fill("7")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Running")).to_contain_text("second", timeout=30_000)
    for name in ("second", "third", "holder"):
        page.get_by_role("button", name=f"Kill {name}").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("button", name=f"Kill {name}")).to_be_visible()
        page.get_by_role("button", name=f"Kill {name}").click()
        page.get_by_role("dialog").get_by_role("button", name="Kill").click()
        expect(page.get_by_role("button", name=f"Kill {name}")).to_have_count(0)
    expect(page.get_by_text("Nothing trains and nothing waits.")).to_be_visible()
    assert master.get(f"/experiments/{second}")["state"] == "CANCELED"


def test_the_cluster_says_who_holds_each_slot_and_what_takes_the_disk(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path
) -> None:
    [running] = submit(home, tmp_path, described("holds", batches=4000, pace=0.05, rate=0.01))
    page = go(screen, "/cluster")
    slots = page.get_by_role("table", name="Slots")
    expect(slots.get_by_role("link", name=f"#{running}, trial 1")).to_be_visible()
    expect(page.get_by_role("table", name="Disk by kind")).to_contain_text("kB")
    picture(page, "cluster")
    assert violations(page, ".det-page-body") == []
    page.get_by_role("button", name="Clean up").click()
    dialog = page.get_by_role("dialog", name="Clean up the disk")
    expect(dialog.get_by_role("checkbox")).to_have_count(4)
    assert violations(page, "dialog") == []
    picture(page, "clean")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    master.post(f"/experiments/{running}/kill")
    expect(slots).not_to_contain_text(f"#{running}")


def test_a_model_is_made_a_checkpoint_registered_and_all_of_it_deleted(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path
) -> None:
    [done] = submit(home, tmp_path, described("trained", batches=40, rate=0.01))
    wait_for_end(master, done)
    checkpoints = master.get(f"/experiments/{done}/checkpoints")
    uuid = next(checkpoint["uuid"] for checkpoint in checkpoints if checkpoint["state"] == "COMPLETED")
    page = go(screen, "/models")
    page.get_by_role("button", name="New model").click()
    page.get_by_label("Name").fill("digits")
    page.get_by_label("Labels").fill("vision, <i>best</i>")
    page.get_by_label("Metadata").fill("owner: me")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="digits")).to_be_visible()
    expect(page.get_by_text("<i>best</i>")).to_be_visible()
    page.get_by_role("button", name="Register a version").click()
    page.get_by_label("Checkpoint").fill(uuid)
    page.get_by_label("Stage").fill("staging")
    page.get_by_role("dialog").get_by_role("button", name="Register").click()
    row = page.get_by_role("table", name="Versions").locator("tbody tr")
    expect(row).to_contain_text("staging")
    expect(row.get_by_role("link", name=f"#{done}", exact=True)).to_be_visible()
    picture(page, "model")
    assert violations(page, ".det-page-body") == []
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Unarchive")).to_be_visible()
    page.get_by_role("link", name="All models").click()
    expect(page.get_by_text("No model fits.")).to_be_visible()
    page.get_by_label("Archived, too").check()
    expect(page.get_by_role("table", name="Models")).to_contain_text("digits")
    picture(page, "models")
    assert violations(page, ".det-page-body") == []
    page.get_by_role("link", name="digits").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_label("Delete its versions, too").check()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No model is registered yet.")).to_be_visible()
