"""What comes from outside is text everywhere; the master's token stays on the server; other pages can do nothing."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_parts import TOKEN, Keep, Lab, Opened, Screen, number_in
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from traffic import Traffic, note_dialogs, the_token_is_nowhere
from training_notebook import training_cells, write_notebook
from view_parts import open_tab, page_of

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

NAME = "<img src=x onerror=owned=1> & co"
METRIC = "<svg onload=owned=2>"
HPARAM = "<iframe srcdoc=owned>"
LOG_LINE = "<script>window.owned = 3</script>"


def hostile_cells() -> tuple[str, str, str]:
    """Return cells whose names, metrics, hyperparameters and output are all markup."""
    definition, config, create = training_cells("NAME", pace=0.1, extra=f"print('{LOG_LINE}')")
    definition = definition.replace('{"loss": loss}', f'{{"loss": loss, "{METRIC}": loss}}')
    config = config.replace("NAME", NAME).replace(
        '"global_batch_size": 8', f'"global_batch_size": 8, "{HPARAM}": "<b>"'
    )
    return definition, config, create


def is_text(screen: Screen, root: Locator, *words: str) -> None:
    """Check that words are there as they were written, and that none of them has become an element."""
    for word in words:
        expect(root.get_by_text(word).first).to_be_visible()
    assert root.locator("script, iframe, img[src=x], [onload], [onerror]").count() == 0
    assert screen.page.evaluate("window.owned") is None


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """The address of somebody else's web page."""
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


FETCH = """async ([url, method, headers, mode]) => {
  try {
    const body = method === 'POST' ? '{}' : undefined;
    const signal = AbortSignal.timeout(60_000);
    const answer = await fetch(url, { method, headers, mode, body, signal, credentials: 'include' });
    return [answer.status, await answer.text()];
  } catch (error) {
    return [0, String(error)];
  }
}"""


def test_markup_is_text_the_token_stays_on_the_server_and_no_other_page_acts(
    opened: Opened, lab: Lab, home: Home, master: MasterAnswers, elsewhere: str, keep: Keep
) -> None:
    screen = opened(lab, width=1500)
    traffic = Traffic(screen)
    dialogs = note_dialogs(screen)
    path = write_notebook(lab.root / "hostile.ipynb", *hostile_cells())
    screen.open(path)
    screen.run_all(3)
    view = screen.cell(2).locator(".det-view")
    is_text(screen, view, NAME, METRIC, HPARAM, LOG_LINE)
    experiment = number_in(view.locator(".det-title").first.inner_text())
    panel = screen.open_panel()
    is_text(screen, panel, NAME)
    screen.save()
    panel.get_by_role("option").first.click()
    page = page_of(screen, experiment)
    is_text(screen, page, NAME, METRIC, HPARAM)
    is_text(screen, open_tab(page, "Logs"), LOG_LINE)
    expect(screen.page.get_by_role("tab", name=NAME)).to_be_visible()
    keep(screen, "markup-is-text")

    the_token_is_nowhere(screen, traffic, home.token.read_text().strip(), experiment, path, LOG_LINE)
    nobody_else_acts(screen, master, experiment, elsewhere)
    assert not dialogs


def nobody_else_acts(screen: Screen, master: MasterAnswers, experiment: int, elsewhere: str) -> None:
    """Check that nothing acts without the XSRF token, and no page of another origin even with the user's cookies."""
    api = f"{screen.lab.base}det-native/api/"
    pause = f"{api}master/experiments/{experiment}/pause"

    def state() -> str:
        return str(master.get(f"/experiments/{experiment}")["state"])

    for url in (pause, f"{api}start", f"{api}notebook-runs"):
        assert screen.page.evaluate(FETCH, [url, "POST", {}, "same-origin"])[0] == 403, url
    assert state() == "ACTIVE"

    # The user's cookies go along with what a page of another port of this host asks for; that is all it gets.
    other = screen.page.context.new_page()
    other.goto(elsewhere)
    assert other.evaluate(FETCH, [f"{api}status", "GET", {}, "cors"])[0] == 0, "the answer is not for other origins"
    assert other.evaluate(FETCH, [f"{api}master/experiments", "GET", {}, "no-cors"]) == [0, ""], "nor without CORS"
    other.evaluate(FETCH, [pause, "POST", {}, "no-cors"])
    other.evaluate(FETCH, [pause, "POST", {"X-XSRFToken": "guessed"}, "cors"])
    other.evaluate(FETCH, [f"{pause}?token={TOKEN[:-1]}", "POST", {}, "no-cors"])
    assert state() == "ACTIVE"
    other.close()

    cookies = {cookie["name"]: cookie["value"] for cookie in screen.page.context.cookies(screen.lab.base)}
    header = {"X-XSRFToken": cookies["_xsrf"]}
    assert screen.page.evaluate(FETCH, [pause, "POST", header, "same-origin"])[0] == 200, (
        "it was the header that lacked"
    )
    assert state() == "PAUSED"
