"""Every state has its text, a retry where it helps, both themes, keyboard and names; what is hidden asks nothing."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_masters import start_master, stop_master
from browser_parts import Keep, Lab, Opened, Screen, number_in, training_cells, wait_until, write_notebook
from contrast import check_contrast
from playwright.sync_api import Locator, Route, expect
from stand_in import StandIn

from det_native import __version__
from det_native.client.session import Session
from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow

Both = Callable[[Screen, Locator, str], None]


@pytest.fixture
def both_themes(keep: Keep) -> Both:
    """Return what checks that all texts of an element can be read in the light and in the dark theme."""

    def check(screen: Screen, root: Locator, name: str) -> None:
        for dark in (True, False):
            screen.set_theme(dark)
            # A style sheet comes after the name of its theme.
            wait_until(lambda d=dark: is_dark(root) == d, "the theme is there", 10)  # type: ignore[misc]
            keep(screen, f"{name}-{'dark' if dark else 'light'}")
            check_contrast(root)

    return check


def is_dark(root: Locator) -> bool:
    """Whether texts are light."""
    return bool(root.evaluate("element => Number(getComputedStyle(element).color.match(/\\d+/)[0]) > 128"))


@pytest.fixture
def empty_home(tmp_path: Path) -> Iterator[Home]:
    """The home of a master that somebody has yet to start."""
    home = Home(tmp_path / "home")
    yield home
    stop_master(home)


@pytest.fixture
def lab_alone(empty_home: Home, tmp_path: Path) -> Iterator[Lab]:
    """A JupyterLab without a master."""
    folder = tmp_path / "lab"
    folder.mkdir()
    lab = Lab(folder, empty_home.path, environment={"DET_SLOTS": "cpu:1", "TMPDIR": str(folder)})
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def stand_in(home: Home) -> Iterator[StandIn]:
    """What answers at the address that the next JupyterLab is told."""
    runtime = read_runtime(home)
    assert runtime is not None
    with StandIn(runtime.url).serving() as serving:
        yield serving


@pytest.fixture(scope="module")
def lab_elsewhere(home: Home, stand_in: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab whose environment names a master and a wrong token."""
    environment = {"DET_MASTER": stand_in.url, "DET_TOKEN": "a-wrong-token"}
    lab = Lab(tmp_path_factory.mktemp("lab-elsewhere"), home.path, environment=environment)
    yield lab
    lab.close()


def test_without_a_master_one_is_started_lost_and_started_again(
    lab_alone: Lab, opened: Opened, empty_home: Home, both_themes: Both
) -> None:
    screen = opened(lab_alone)
    screen.open()
    panel = screen.open_panel()
    message = panel.locator(".det-Panel-message")
    expect(message.get_by_role("heading")).to_have_text("No master is running")
    expect(message).to_contain_text(str(empty_home.path))
    both_themes(screen, panel, "panel-none")

    # By keyboard alone; what is said meanwhile is noted.
    message.evaluate("""element => {
      window.said = [];
      new MutationObserver(() => window.said.push(element.innerText)).observe(element, { childList: true });
    }""")
    panel.get_by_role("button", name="Refresh the list of experiments").focus()
    screen.page.keyboard.press("Tab")
    start = panel.get_by_role("button", name="Start a master")
    expect(start).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(message.get_by_role("heading")).to_have_text("No experiments yet", timeout=60_000)
    assert any("The master is starting" in text for text in screen.page.evaluate("window.said"))
    expect(panel.get_by_role("status")).to_contain_text("Master running")
    both_themes(screen, panel, "panel-empty")

    runtime = read_runtime(empty_home)
    assert runtime is not None
    os.kill(runtime.pid, signal.SIGKILL)
    expect(message.get_by_role("heading")).to_have_text("No master is running", timeout=30_000)
    start.click()
    expect(message.get_by_role("heading")).to_have_text("No experiments yet", timeout=60_000)


def test_a_view_under_a_cell_starts_the_master_that_it_has_lost_and_goes_on(
    lab_alone: Lab, opened: Opened, empty_home: Home, keep: Keep
) -> None:
    start_master(empty_home)
    lost = read_runtime(empty_home)
    assert lost is not None
    screen = opened(lab_alone)
    screen.open(write_notebook(lab_alone.root / "lost.ipynb", *training_cells("lost")))
    screen.run_all(3)
    view = screen.cell(2).locator(".det-view").first
    facts = view.locator(".det-facts")
    expect(facts).to_contain_text(re.compile("batch [1-9]"), timeout=60_000)

    os.kill(lost.pid, signal.SIGKILL)
    notice = view.locator(".det-notice", has_text="Connection lost since")
    expect(notice).to_be_visible(timeout=30_000)
    shown = number_in(facts.inner_text())
    keep(screen, "view-start")
    notice.get_by_role("button", name="Start a master").click()
    expect(notice).to_be_hidden(timeout=60_000)
    wait_until(lambda: number_in(facts.inner_text()) > shown, "the view goes on")
    found = read_runtime(empty_home)
    assert found is not None
    assert found.pid != lost.pid
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")


def test_a_master_that_cannot_be_used_is_explained_and_tried_again(
    opened: Opened, lab_elsewhere: Lab, stand_in: StandIn, both_themes: Both
) -> None:
    screen = opened(lab_elsewhere)
    screen.open()
    panel = screen.open_panel()
    message = panel.locator(".det-Panel-message")
    again = panel.get_by_role("button", name="Try again")
    for mode, title, words in (
        ("master", "The master refuses access", ["refuses the token", "DET_TOKEN"]),
        ("newer", "Versions do not match", ["9.9.9", "Upgrade det_native here"]),
        ("older", "Versions do not match", ["9.9.9", "det up"]),
        ("page", "The master does not answer", ["is no det_native master", "DET_MASTER"]),
    ):
        stand_in.mode = mode
        if again.is_visible():
            again.click()
        expect(message).to_contain_text(words[0], timeout=20_000)
        expect(message.get_by_role("heading")).to_have_text(title)
        for word in words:
            expect(message).to_contain_text(word)
        expect(again).to_be_visible()
        both_themes(screen, panel, f"panel-{mode}")


def test_a_page_of_another_version_than_its_server_says_so_and_is_reloaded(
    opened: Opened, lab: Lab, both_themes: Both
) -> None:
    screen = opened(lab)

    def of_a_later_release(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "version": "9.9.9"})

    screen.page.route("**/det-native/api/status", of_a_later_release)
    screen.open()
    panel = screen.open_panel()
    message = panel.locator(".det-Panel-message")
    expect(message.get_by_role("heading")).to_have_text("Versions do not match")
    expect(message).to_contain_text(f"This page has det_native {__version__}, the Jupyter server has 9.9.9.")
    both_themes(screen, panel, "panel-versions")

    # The next page that is loaded is the server's own.
    screen.page.unroute("**/det-native/api/status")
    with screen.page.expect_navigation():
        message.get_by_role("button", name="Reload the page").click()
    screen.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
    screen.execute("det-native:show-experiments")  # it may have come back with the layout
    expect(panel.get_by_role("status")).to_contain_text("Master running")


def test_a_running_a_lost_and_a_failed_experiment_can_be_read_and_used_by_keyboard(
    opened: Opened, lab: Lab, home: Home, both_themes: Both
) -> None:
    screen = opened(lab, width=1500)
    notebook = write_notebook(
        lab.root / "states.ipynb",
        *training_cells("going-on"),
        training_cells("broken", extra="assert batch_idx < 5, 'on purpose'")[0],
        "config['name'] = 'broken'\ndet.experimental.create(Line, config)",
    )
    screen.open(notebook)
    screen.run_all(3)
    panel = screen.open_panel()
    view = screen.cell(2).get_by_role("region", name="Experiment")
    expect(view.locator(".det-chart canvas").first).to_be_visible(timeout=60_000)
    both_themes(screen, view, "view-running")
    both_themes(screen, panel, "panel-running")
    acts_by_keyboard(screen, view)
    assert unnamed(view) == unnamed(panel) == []

    screen.run(3, 4)
    failed = screen.cell(4).get_by_role("region", name="Experiment")
    expect(failed.get_by_role("alert").first).to_contain_text("on purpose", timeout=60_000)
    expect(failed.get_by_role("alert").first).to_contain_text("in cell [4], line")
    expect(failed).to_contain_text("Traceback")
    problem = panel.locator(".det-Row-problem", has_text="on purpose")
    expect(problem).to_contain_text("Cell [4]: AssertionError")
    both_themes(screen, failed, "view-failed")
    both_themes(screen, panel, "panel-failed")

    view.scroll_into_view_if_needed()
    runtime = read_runtime(home)
    assert runtime is not None
    os.kill(runtime.pid, signal.SIGKILL)
    for root in (panel, view):
        expect(root.get_by_text("Connection lost since").first).to_be_visible(timeout=30_000)
    expect(panel.get_by_role("button", name="Start a master")).to_be_visible()
    expect(view.get_by_role("button", name="Try now")).to_be_visible()
    both_themes(screen, panel, "panel-lost")
    both_themes(screen, view, "view-lost")
    expect(view.get_by_role("button", name="Start a master")).to_be_visible()
    start_master(home)
    for root in (panel, view):
        expect(root.get_by_text("Connection lost since")).to_be_hidden(timeout=60_000)


def acts_by_keyboard(screen: Screen, view: Locator) -> None:
    """Check that Tab goes from button to button of a view in a notebook, and that Enter and Escape act."""
    badge = view.locator(".det-badge")
    view.get_by_role("button", name="Pause").focus()
    screen.page.keyboard.press("Enter")
    expect(badge).to_have_text("Paused")
    resume = view.get_by_role("button", name="Resume")
    resume.focus()
    screen.page.keyboard.press("Space")
    expect(badge).to_have_text("Running")
    view.get_by_role("button", name="Pause").focus()
    screen.page.keyboard.press("Tab")
    stop = view.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_focused()
    screen.page.keyboard.press("Enter")
    expect(view.get_by_role("button", name="Keep running")).to_be_focused()
    screen.page.keyboard.press("Escape")
    expect(stop).to_be_focused()
    expect(badge).to_have_text("Running")
    summary = view.locator("summary", has_text="Checkpoints")
    summary.focus()
    screen.page.keyboard.press("Enter")
    expect(view.get_by_role("table", name="Checkpoints")).to_be_visible()


def unnamed(root: Locator) -> list[str]:
    """Return what can be used or stands for itself below an element, and has no name for a screen reader."""
    roles = "button, [role=button], [role=img], [role=region], [role=listbox], [role=option], [role=progressbar], table"
    found: list[str] = root.evaluate(
        """(root, roles) => [...root.querySelectorAll(`${roles}, [tabindex='0'], [role=group]`)]
          .filter(each => each.checkVisibility())
          .filter(each => !(each.getAttribute('aria-label') || '').trim() && !each.textContent.trim())
          .map(each => each.outerHTML.slice(0, 120))""",
        roles,
    )
    return found


def test_what_is_hidden_asks_nothing(opened: Opened, lab: Lab, master: Session) -> None:
    screen = opened(lab)
    open_streams = screen.watch_streams()

    def check_silence() -> None:
        wait_until(lambda: open_streams() == 0, "the stream is closed", 15)
        asked = len(screen.asked(""))
        train(master, 60)
        assert open_streams() == 0
        assert len(screen.asked("")) == asked, screen.asked("")[asked:]

    screen.open(write_notebook(lab.root / "hidden.ipynb", *training_cells("hidden")))
    screen.run_all(3)
    screen.cell(2).locator(".det-chart canvas").first.scroll_into_view_if_needed(timeout=60_000)
    screen.open_panel()
    expect(screen.page.locator(".det-Row")).not_to_have_count(0)
    wait_until(lambda: open_streams() == 1, "the view and the panel share a stream")

    # The panel is folded away, and another document lies before the notebook.
    screen.execute("application:toggle-left-area")
    screen.execute("launcher:create")
    check_silence()
    # They come back, and the browser's tab is hidden.
    screen.execute("application:toggle-left-area")
    screen.execute("application:activate-previous-tab")
    wait_until(lambda: open_streams() == 1, "the stream is back")
    hide_page(screen, hidden=True)
    check_silence()
    hide_page(screen, hidden=False)
    wait_until(lambda: open_streams() == 1, "the stream is back")


def train(master: Session, count: int) -> None:
    """Wait until the newest experiment has trained so many more batches."""
    experiment = master.get("/experiments")[0]["id"]

    def batches() -> int:
        return int(master.get(f"/experiments/{experiment}/trials")[0]["batches"])

    begin = batches()
    wait_until(lambda: batches() >= begin + count, "the training goes on", 60)


def hide_page(screen: Screen, *, hidden: bool) -> None:
    """Have the page believe that its tab lies behind others: a headless browser shows all of them."""
    screen.page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )
