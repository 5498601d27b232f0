"""The page at the master's own address: signing in by a link, deep links, two tabs, a master that comes back."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe import violations
from browser_parts import PATIENCE
from master_answers import MasterAnswers
from playwright.sync_api import Browser, BrowserContext, Page, expect

from det_native.client.connect import connect
from det_native.client.page_link import page_link
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

SIGNED_OUT = "You are signed out"
FETCH = """async ([url, method, headers, mode]) => {
  try {
    const body = method === 'POST' ? '{}' : undefined;
    const answer = await fetch(url, { method, headers, mode, body, credentials: 'include' });
    return [answer.status, await answer.text()];
  } catch (error) {
    return [0, String(error)];
  }
}"""


def is_at(page: Page, name: str) -> None:
    """Check which page of the workspace is shown."""
    expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")


def test_signs_in_opens_a_link_and_signs_out(master_page: Page) -> None:
    page = master_page
    assert "signin" not in page.url
    is_at(page, "Experiments")
    assert violations(page) == []
    page.goto(f"{page.url.partition('#')[0]}#/queue")
    is_at(page, "Queue")
    page.reload()
    is_at(page, "Queue")
    page.go_back()
    is_at(page, "Experiments")
    page.goto(f"{page.url.partition('#')[0]}#/nonsense/7")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name=SIGNED_OUT)).to_be_visible()
    assert violations(page) == []
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.long
def test_tabs_share_the_session_and_go_on_where_they_were(master_page: Page, master: MasterAnswers) -> None:
    first = master_page
    base = first.url.partition("#")[0]
    second = first.context.new_page()
    second.goto(f"{base}#/cluster")
    is_at(second, "Cluster")
    first.get_by_role("button", name="Sign out").click()
    for page in (first, second):
        expect(page.get_by_role("heading", name=SIGNED_OUT)).to_be_visible()
    link = page_link(master, "/models")
    first.goto(link)
    is_at(first, "Models")
    is_at(second, "Cluster")

    # Who uses a link a second time may have stolen it: what it has opened ends, with the next request at the latest.
    [code] = parse_qs(urlsplit(link).fragment)["signin"]
    answer = second.request.post(f"{base}api/v1/session", data={"code": code})
    assert answer.status == 401
    second.reload()
    for page in (second, first):  # the first by the end of its stream of events, without a click
        expect(page.get_by_role("heading", name=SIGNED_OUT)).to_be_visible()
    assert first.url.endswith("#/models")
    first.goto(link)
    expect(first.get_by_role("alert")).to_contain_text("This link was used already.")
    assert "signin" not in first.url


@pytest.mark.long
def test_a_page_of_another_port_gets_nothing_with_the_cookie(
    master_page: Page, master: MasterAnswers, elsewhere: str
) -> None:
    base = master_page.url.partition("#")[0]
    other = master_page.context.new_page()
    other.goto(elsewhere)
    assert elsewhere.startswith("http://127.0.0.1:")
    [cookie] = [each for each in other.context.cookies(base) if each["name"].startswith("det-session")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie in other.context.cookies(elsewhere), "the browser sends it to every port"
    assert other.evaluate("[document.cookie, Object.keys(localStorage).length]") == ["", 0]
    for path in ("api/v1/experiments", "api/v1/session", ""):
        assert other.evaluate(FETCH, [f"{base}{path}", "GET", {}, "cors"])[0] == 0, (
            "the answer is not for other origins"
        )
        assert other.evaluate(FETCH, [f"{base}{path}", "GET", {}, "no-cors"])[1] in ("", "TypeError: Failed to fetch")
    other.evaluate(FETCH, [f"{base}api/v1/session", "DELETE", {}, "cors"])
    key = master_page.evaluate("localStorage.getItem('det-native.session')")
    other.evaluate(FETCH, [f"{base}api/v1/session", "DELETE", {"X-Det-Session": key}, "cors"])
    frame = "url => { const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame); }"
    other.evaluate(frame, base)
    other.wait_for_function("() => window.frames.length === 1")
    master_page.reload()
    is_at(master_page, "Experiments")
    assert key not in json.dumps(master.get("/master"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """The address of a page that another program of this machine serves."""
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.long
def test_a_file_is_downloaded_by_a_ticket_that_no_history_keeps_open(master_page: Page, tmp_path: Path) -> None:
    ask = """async () => {
      const key = localStorage.getItem('det-native.session');
      const headers = { 'Content-Type': 'application/json', 'X-Det-Session': key };
      const body = JSON.stringify({ address: '/api/v1/master' });
      const { address } = await (await fetch('/api/v1/session/ticket', { method: 'POST', headers, body })).json();
      const link = document.createElement('a');
      link.href = address;
      link.download = 'master.json';
      link.click();
      return address;
    }"""
    with master_page.expect_download() as waiting:
        address = master_page.evaluate(ask)
    waiting.value.save_as(tmp_path / "master.json")
    assert "slots" in json.loads((tmp_path / "master.json").read_text())
    base = master_page.url.partition("/#")[0]
    assert master_page.request.get(f"{base}{address}").status == 401


@pytest.mark.long
def test_theme_and_narrow_windows(master_page: Page) -> None:
    page = master_page
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("menuitemcheckbox", name="Dark").click()
    expect(page.locator(".det-app")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Escape")
    for width in (390, 600, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        page.reload()
        expect(page.locator(".det-app")).to_have_attribute("data-theme", "dark")
        assert violations(page, ".det-topbar") == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.get_by_role("button", name="Theme").click()
        box = page.get_by_role("menu").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.get_by_role("menuitemcheckbox", name="As the system").click()
    expect(page.locator(".det-app")).to_have_attribute("data-theme", "light")


def det(home: Home, *words: str) -> None:
    """Run the command."""
    environment = {**os.environ, "DET_HOME": str(home.path), "DET_SLOTS": "cpu:1", "TMPDIR": str(home.path.parent)}
    command = [sys.executable, "-m", "det_native.client.command", *words]
    subprocess.run(command, check=True, env=environment, timeout=PATIENCE)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser with nothing of other tests."""
    made = browser.new_context()
    yield made
    made.close()


@pytest.mark.long
def test_an_open_page_says_that_the_master_is_gone_and_signs_out_when_another_has_its_port(
    empty_home: Home, context: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    monkeypatch.setenv("DET_HOME", str(empty_home.path))
    det(empty_home, "up", "--port", port)
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    link = page_link(connect(start=False), "/queue")
    assert link.startswith(f"http://127.0.0.1:{port}/#")
    page.goto(link)
    is_at(page, "Queue")
    det(empty_home, "down")
    banner = page.locator(".det-banner")
    expect(banner).to_contain_text("The master does not answer at this address.")
    expect(banner).to_contain_text("det open --page")
    expect(banner.get_by_role("button", name="Start")).to_have_count(0)
    det(empty_home, "up", "--port", port)
    expect(page.get_by_role("heading", name=SIGNED_OUT)).to_be_visible()
    assert page.url.endswith("#/queue")
    page.goto(page_link(connect(start=False), "/queue"))
    is_at(page, "Queue")
