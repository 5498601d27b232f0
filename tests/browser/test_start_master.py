"""Where no master runs, one is started from the panel, by keyboard alone."""

from __future__ import annotations

import pytest
from browser_parts import Lab, Opened
from playwright.sync_api import expect

from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow


def test_a_master_is_started_from_the_panel(lab_alone: Lab, opened: Opened, empty_home: Home) -> None:
    screen = opened(lab_alone)
    screen.open()
    panel = screen.open_panel()
    heading = panel.locator(".det-Panel-message").get_by_role("heading")
    expect(heading).to_have_text("No master is running")
    panel.get_by_role("button", name="Refresh the list of experiments").focus()
    screen.page.keyboard.press("Tab")
    expect(panel.get_by_role("button", name="Start a master")).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(heading).to_have_text("No experiments yet")
    expect(panel.get_by_role("status")).to_contain_text("Master running")
    assert read_runtime(empty_home) is not None
