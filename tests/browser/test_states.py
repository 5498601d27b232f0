"""Every state has its text, a retry where it helps, both themes, keyboard and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from browser_masters import kill_master, start_master
from browser_parts import Keep, Lab, Opened, Screen, number_in, wait_until
from contrast import check_contrast
from master_answers import MasterAnswers
from playwright.sync_api import Locator, Route, expect
from stand_in import StandIn
from training_notebook import training_cells, write_notebook
from view_parts import batches_of, open_dialog

from det_native import __version__
from det_native.schema.home import Home, read_runtime

pytestmark = [pytest.mark.slow, pytest.mark.soak]

Both = Callable[..., None]


@pytest.fixture
def both_themes(keep: Keep) -> Both:
    """Return what checks that all texts of some elements can be read in the light and in the dark theme."""

    def check(screen: Screen, name: str, *roots: Locator) -> None:
        present = is_dark(roots[0])  # the theme that is there comes first: a switch takes seconds
        for dark in (present, not present):
            screen.set_theme(dark)
            for root in roots:
                # A style sheet comes after the name of its theme.
                wait_until(lambda r=root, d=dark: is_dark(r) == d, "the theme is there")  # type: ignore[misc]
                check_contrast(root)
            keep(screen, f"{name}-{'dark' if dark else 'light'}")

    return check


def is_dark(root: Locator) -> bool:
    """Whether texts are light."""
    return bool(root.evaluate("element => Number(getComputedStyle(element).color.match(/\\d+/)[0]) > 128"))


@pytest.fixture(scope="module")
def stand_in(home: Home) -> Iterator[StandIn]:
    """What answers at the address that the next JupyterLab is told."""
    runtime = read_runtime(home)
    assert runtime is not None
    with StandIn(runtime.url, home.path / "stand-in.sock").serving() as serving:
        yield serving


@pytest.fixture(scope="module")
def lab_elsewhere(home: Home, stand_in: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab whose environment names a master and a wrong token."""
    environment = {"DET_MASTER": stand_in.url, "DET_TOKEN": "a-wrong-token"}
    lab = Lab(tmp_path_factory.mktemp("lab-elsewhere"), home.path, environment=environment)
    yield lab
    lab.close()


@pytest.mark.soak
def test_a_master_is_started_from_the_panel_and_from_a_view_that_has_lost_its_own(
    lab_alone: Lab, opened: Opened, empty_home: Home, both_themes: Both, keep: Keep
) -> None:
    screen = opened(lab_alone)
    screen.open(write_notebook(lab_alone.root / "lost.ipynb", *training_cells("lost")))
    panel = screen.open_panel()
    message = panel.locator(".det-Panel-message")
    expect(message.get_by_role("heading")).to_have_text("No master is running")
    expect(message).to_contain_text(str(empty_home.path))
    both_themes(screen, "panel-none", panel)

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
    expect(message.get_by_role("heading")).to_have_text("No experiments yet")
    assert any("The master is starting" in text for text in screen.page.evaluate("window.said"))
    expect(panel.get_by_role("status")).to_contain_text("Master running")
    both_themes(screen, "panel-empty", panel)

    kill_master(empty_home)
    expect(message.get_by_role("heading")).to_have_text("No master is running")
    start.click()
    expect(message.get_by_role("heading")).to_have_text("No experiments yet")
    starts_the_master_that_it_has_lost(screen, empty_home, keep)


def starts_the_master_that_it_has_lost(screen: Screen, home: Home, keep: Keep) -> None:
    """Check that a view under a cell starts a master in place of the one that it has lost, and goes on."""
    screen.run_all(3)
    view = screen.cell(2).locator(".det-view").first
    expect(view.locator(".det-facts")).to_contain_text(re.compile("batch [1-9]"))
    lost = kill_master(home)
    notice = view.locator(".det-notice", has_text="No master runs in")  # since when, it knows if it was connected
    expect(notice).to_be_visible()
    shown = batches_of(view)
    keep(screen, "view-start")
    notice.get_by_role("button", name="Start a master").click()
    expect(notice).to_be_hidden()
    wait_until(lambda: batches_of(view) > shown, "the view goes on")
    found = read_runtime(home)
    assert found is not None
    assert found.pid != lost
    view.get_by_role("button", name="Stop").click()
    view.get_by_role("button", name="Stop it").click()
    expect(view.locator(".det-badge")).to_have_text("Stopped")


@pytest.mark.soak
def test_a_master_that_cannot_be_used_is_explained_and_tried_again(
    opened: Opened, lab_elsewhere: Lab, stand_in: StandIn, both_themes: Both
) -> None:
    screen = opened(lab_elsewhere)
    screen.open(write_notebook(lab_elsewhere.root / "unsent.ipynb", *training_cells("unsent")))
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
        expect(message).to_contain_text(words[0])
        expect(message.get_by_role("heading")).to_have_text(title)
        for word in words:
            expect(message).to_contain_text(word)
        expect(again).to_be_visible()
        both_themes(screen, f"panel-{mode}", panel)
        dialog = open_dialog(screen)
        for word in words:
            expect(dialog.locator(".det-Submit-remarks")).to_contain_text(word)
        screen.page.keyboard.press("Escape")
        dialog.wait_for(state="detached")


@pytest.mark.soak
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
    both_themes(screen, "panel-versions", panel)

    # The next page that is loaded is the server's own.
    screen.page.unroute("**/det-native/api/status")
    with screen.page.expect_navigation():
        message.get_by_role("button", name="Reload the page").click()
    screen.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
    screen.execute("det-native:show-experiments")  # it may have come back with the layout
    expect(panel.get_by_role("status")).to_contain_text("Master running")


def test_a_running_a_lost_and_a_failed_experiment_can_be_read_and_used_by_keyboard(
    opened: Opened, lab: Lab, home: Home, master: MasterAnswers, both_themes: Both
) -> None:
    screen = opened(lab, width=1500)
    notebook = write_notebook(
        lab.root / "states.ipynb",
        *training_cells("going-on"),
        training_cells("fails", extra="assert batch_idx < 5, 'on <b>purpose</b>'")[0],
        "config['name'] = 'fails'\ndet.experimental.create(Line, config)",
    )
    screen.open(notebook)
    screen.run_all(3)
    panel = screen.open_panel()
    view = screen.cell(2).get_by_role("region", name="Experiment")
    expect(view.locator(".det-chart canvas").first).to_be_visible()
    both_themes(screen, "running", view, panel)
    acts_by_keyboard(screen, view, master)
    assert unnamed(view) == unnamed(panel) == []

    screen.run(3, 4)
    failed = screen.cell(4).get_by_role("region", name="Experiment")
    says_what_failed(failed)
    row = panel.locator(f'.det-Row[data-experiment-id="{number_in(failed.locator(".det-title").inner_text())}"]')
    expect(row.locator(".det-Row-problem")).to_contain_text("Cell [4]: AssertionError")
    expect(row.locator(".det-Row-problem")).to_contain_text("on <b>purpose</b>")
    both_themes(screen, "failed", failed, panel)

    view.scroll_into_view_if_needed()
    kill_master(home)
    for root in (panel, view):
        expect(root.get_by_text("Connection lost since").first).to_be_visible()
    expect(panel.get_by_role("button", name="Start a master")).to_be_visible()
    expect(view.get_by_role("button", name="Try now")).to_be_visible()
    both_themes(screen, "lost", panel, view)
    expect(view.get_by_role("button", name="Start a master")).to_be_visible()
    start_master(home)
    for root in (panel, view):
        expect(root.get_by_text("Connection lost since")).to_be_hidden()


def says_what_failed(failed: Locator) -> None:
    """Check that a view tells an exception of the user's with its cell, as it was written."""
    alert = failed.get_by_role("alert").first
    expect(alert).to_contain_text("on <b>purpose</b>")
    expect(alert).to_contain_text("in cell [4], line")
    box = failed.bounding_box()
    assert box is not None
    assert box["height"] <= 300, "a failure is told in few lines"
    expect(failed.locator(".det-traceback")).to_be_hidden()
    failed.get_by_text("Traceback", exact=True).click()
    expect(failed.locator(".det-traceback")).to_be_visible()
    failure = failed.locator(".det-failure")
    expect(failure).to_be_visible()
    expect(failure).to_contain_text("AssertionError")
    expect(failure).to_contain_text("on <b>purpose</b>")
    expect(failed.locator(".det-badge")).to_have_text("Failed")


def acts_by_keyboard(screen: Screen, view: Locator, master: MasterAnswers) -> None:
    """Check that Tab goes from button to button of a view in a notebook, and that Enter and Escape act."""
    badge = view.locator(".det-badge")
    view.get_by_role("button", name="Pause").focus()
    screen.page.keyboard.press("Enter")
    expect(badge).to_have_text("Paused")
    experiment = number_in(view.locator(".det-title").inner_text())
    assert master.get(f"/experiments/{experiment}")["state"] == "PAUSED"
    expect(view.get_by_role("button", name="Resume")).to_be_focused()
    screen.page.keyboard.press("Space")
    expect(badge).to_have_text("Running")
    expect(view.get_by_role("button", name="Pause")).to_be_focused()
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
