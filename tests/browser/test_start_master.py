"""Where no master runs, one is started from the panel, by keyboard alone."""

from __future__ import annotations

import pytest
from browser_masters import kill_master, stop_master
from browser_parts import Screen
from playwright.sync_api import expect

from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow


def test_a_master_is_started_from_the_panel(screen: Screen, home: Home) -> None:
    killed = kill_master(home)
    screen.open()
    panel = screen.open_panel()
    expect(panel).to_contain_text("No master is running")
    panel.get_by_role("button", name="Refresh the list of experiments").focus()
    screen.page.keyboard.press("Tab")
    expect(panel.get_by_role("button", name="Start a master")).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(panel.get_by_role("status")).to_contain_text("Master running")
    runtime = read_runtime(home)
    assert runtime is not None
    assert runtime.pid != killed
    stop_master(home)  # which is a process of this JupyterLab's, and so of this test's
