"""Ways to the workspace in JupyterLab: a link, the launcher, the panel's head, and a link that is copied."""

from __future__ import annotations

import pytest
from browser_masters import kill_master, start_master
from browser_parts import TOKEN, Lab, Opened, Screen
from playwright.sync_api import expect

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_a_link_opens_its_page_once_and_the_page_gives_it_back(screen: Screen) -> None:
    page = screen.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=screen.lab.origin)
    page.goto(f"{screen.lab.base}lab?token={TOKEN}&reset&det=%2Fqueue")
    app = page.locator(".det-app")
    expect(app.get_by_role("link", name="Queue", exact=True)).to_have_attribute("aria-current", "page")
    page.wait_for_function("() => !location.search.includes('det=')")
    app.get_by_role("link", name="Cluster", exact=True).click()
    app.get_by_role("button", name="Copy link to this page").click()
    expect(app.get_by_text("The link to this page is copied.")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{screen.lab.base}lab?det=%2Fcluster"
    assert app.get_by_role("button", name="Sign out").count() == 0
    page.goto(f"{link}&reset")
    expect(app.get_by_role("link", name="Cluster", exact=True)).to_have_attribute("aria-current", "page")


def test_the_launcher_and_the_panel_open_the_table(screen: Screen) -> None:
    screen.open()
    page = screen.page
    app = page.locator(".det-app")
    page.locator(".jp-LauncherCard", has_text="Experiments").first.click()
    expect(app.get_by_role("link", name="Experiments", exact=True)).to_have_attribute("aria-current", "page")
    screen.execute("application:close-all")
    expect(app).to_have_count(0)
    screen.open_panel().get_by_role("button", name="All experiments").click()
    expect(app.get_by_role("link", name="Experiments", exact=True)).to_have_attribute("aria-current", "page")


def test_without_a_master_the_workspace_starts_it_and_goes_on_by_itself_after_another(
    empty_home: Home, lab_alone: Lab, opened: Opened
) -> None:
    screen = opened(lab_alone)
    page = screen.page
    page.goto(f"{lab_alone.base}lab?token={TOKEN}&reset&det=%2Fexperiments")
    banner = page.locator(".det-app .det-banner")
    expect(banner).to_contain_text("No master")
    banner.get_by_role("button", name="Start").click()
    expect(banner).to_have_count(0)
    kill_master(empty_home)
    expect(banner).to_be_visible()
    start_master(empty_home)
    expect(banner).to_have_count(0)
