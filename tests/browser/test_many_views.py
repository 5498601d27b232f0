"""Seven live views and the panel in one page: one event stream for all, connections left for JupyterLab's own work.

What is hidden asks for nothing.

A browser opens six connections to a server. Once each view held a stream of its own: the seventh got none, and a save
waited for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_parts import Keep, Lab, Opened, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit
from training_notebook import write_notebook
from view_parts import batches_of

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.soak]

VIEWS = 7
# Tall enough that every view is seen: one that is not asks for nothing.
HEIGHT = 5000


@pytest.fixture
def trainings(home: Home, tmp_path: Path) -> list[int]:
    """Two experiments that train: as many as the master has slots."""
    return submit(home, tmp_path, *(described(f"view {n}", batches=20_000, pace=0.1, rate=0.01) for n in range(2)))


def drawn(view: Locator) -> list[str]:
    """Return the charts of a view as drawn."""
    pictures: list[str] = view.locator(".det-chart canvas").evaluate_all("all => all.map(each => each.toDataURL())")
    return pictures


def all_move(screen: Screen, views: list[Locator]) -> None:
    """Wait until every chart of every view is drawn anew and every view tells more batches."""
    screen.cell(0).scroll_into_view_if_needed()  # running a cell scrolls to the next one
    before = [(batches_of(view), drawn(view)) for view in views]
    for number, (view, (batch, pictures)) in enumerate(zip(views, before, strict=True), 1):
        wait_until(lambda v=view, b=batch: batches_of(v) > b, f"view {number} counts on")  # type: ignore[misc]
        wait_until(
            lambda v=view, p=pictures: not set(p) & set(drawn(v)),  # type: ignore[misc]
            f"the charts of view {number} move",
        )


def seconds_to_save(screen: Screen) -> float:
    """Change the notebook and save it; return how long the browser waited, for a connection and for the answer.

    Without a connection it would wait for ever.
    """
    screen.cell(VIEWS + 1).locator(".cm-content").click()
    screen.page.keyboard.press("Control+End")
    screen.page.keyboard.insert_text("  # changed")
    answer = screen.ask_to_save()
    assert answer.ok
    answer.finished()
    return float(answer.request.timing["responseEnd"]) / 1000


def test_views_and_panel_share_a_stream_leave_jupyterlab_its_connections_and_ask_nothing_when_hidden(
    opened: Opened, lab: Lab, master: MasterAnswers, trainings: list[int], keep: Keep
) -> None:
    screen = opened(lab, height=HEIGHT)
    streams = screen.watch_streams()
    shown = [f"det.attach({trainings[number % 2]})" for number in range(VIEWS)]
    path = write_notebook(lab.root / "seven.ipynb", "import det_native as det", *shown, "print('the kernel', 6 * 7)")
    screen.open(path)
    screen.open_panel()
    screen.run_all(VIEWS + 1)
    views = [screen.cell(number).locator(".det-view").first for number in range(1, VIEWS + 1)]
    for view in views:
        expect(view.locator(".det-chart canvas")).to_have_count(2)
        expect(view.locator(".det-badge")).to_have_text("Running")
    all_move(screen, views)
    assert streams() == 1, "the views and the panel share a stream"

    took = seconds_to_save(screen)
    print(f"saved in {took:.1f} s beside {VIEWS} live views")
    assert "# changed" in path.read_text()
    screen.run(VIEWS + 1)
    expect(screen.cell(VIEWS + 1).locator(".jp-OutputArea-output")).to_contain_text("the kernel 42")
    all_move(screen, views)
    expect(screen.page.locator(".det-Row-state", has_text="Running")).to_have_count(2)
    assert streams() == 1
    keep(screen, "seven-views")
    what_is_hidden_asks_nothing(screen, streams, master)


def what_is_hidden_asks_nothing(screen: Screen, streams: Callable[[], int], master: MasterAnswers) -> None:
    """Check that there is no traffic while views and panel lie behind something else, and that it comes back."""

    def check_silence() -> None:
        wait_until(lambda: streams() == 0, "the stream is closed")
        asked = len(screen.asked(""))
        train(master, 30)
        assert streams() == 0
        assert len(screen.asked("")) == asked, screen.asked("")[asked:]

    # The panel is folded away, and another document lies before the notebook.
    screen.execute("application:toggle-left-area")
    screen.execute("launcher:create")
    check_silence()
    # They come back, and the browser's tab is hidden.
    screen.execute("application:toggle-left-area")
    screen.execute("application:activate-previous-tab")
    wait_until(lambda: streams() == 1, "the stream is back")
    hide_page(screen, hidden=True)
    check_silence()
    hide_page(screen, hidden=False)
    wait_until(lambda: streams() == 1, "the stream is back")


def train(master: MasterAnswers, count: int) -> None:
    """Wait until the newest experiment has trained so many more batches."""
    experiment = master.get("/experiments")[0]["id"]

    def batches() -> int:
        return int(master.get(f"/experiments/{experiment}/trials")[0]["batches"])

    begin = batches()
    wait_until(lambda: batches() >= begin + count, "the training goes on")


def hide_page(screen: Screen, *, hidden: bool) -> None:
    """Have the page believe that its tab lies behind others: a headless browser shows all of them."""
    screen.page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )
