"""The page at the master's own address: signing in by a link, deep links, signing out."""

from __future__ import annotations

import pytest
from axe import violations
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow


def test_signs_in_opens_a_link_and_signs_out(master_page: Page) -> None:
    page = master_page
    assert "signin" not in page.url
    expect(page.get_by_role("link", name="Experiments")).to_have_attribute("aria-current", "page")
    assert violations(page) == []
    base = page.url.partition("#")[0]
    page.goto(f"{base}#/queue")
    expect(page.get_by_role("link", name="Queue")).to_have_attribute("aria-current", "page")
    page.reload()
    expect(page.get_by_role("link", name="Queue")).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.get_by_role("link", name="Experiments")).to_have_attribute("aria-current", "page")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    assert violations(page) == []
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
