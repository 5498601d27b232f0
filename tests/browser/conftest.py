"""One master, JupyterLab and browser for all tests of a process; pictures are kept if a folder is named."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from browser_masters import start_master, stop_master
from browser_parts import CHROMIUM_ARGUMENTS, PATIENCE, Keep, Lab, Opened, Screen, chromium
from browser_server import BrowserServer
from master_answers import MasterAnswers
from playwright.sync_api import Browser, Page, expect, sync_playwright

from det_native.client.connect import connect
from det_native.client.page_link import page_link
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime

FAILED = pytest.StashKey[bool]()


# All modules share a master and a JupyterLab, as a user has them all day: to start them takes as long as a test, and so
# does the first training of a master, whose standbys are not warm. Experiments of other tests are in the list then.
@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a running master."""
    home = Home(tmp_path_factory.mktemp("browser-home"))
    start_master(home)
    yield home
    stop_master(home)


@pytest.fixture(scope="session")
def lab(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab beside that master."""
    lab = Lab(tmp_path_factory.mktemp("lab"), home.path)
    yield lab
    lab.close()


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


@pytest.fixture
def master(home: Home, monkeypatch: pytest.MonkeyPatch) -> MasterAnswers:
    """A session with the master."""
    monkeypatch.setenv("DET_HOME", str(home.path))
    return MasterAnswers(connect(start=False))


@pytest.fixture(scope="session")
def browser_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserServer]:
    """A browser that runs."""
    executable = chromium()
    if executable is None:
        pytest.skip("No chromium here: `apt-get install chromium`, or run tools/system_packages.sh as root.")
    server = BrowserServer(executable, CHROMIUM_ARGUMENTS, tmp_path_factory.mktemp("browser"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def browser(browser_server: BrowserServer) -> Iterator[Browser]:
    """The browser, as a module drives it."""
    # Not for the session: while it is there, an event loop runs in this thread, and other tests want their own.
    # Playwright's own 5 s are short where trainings and other tests share two cores.
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        connected = playwright.chromium.connect(browser_server.address)
        yield connected
        connected.close()


@pytest.fixture
def opened(browser: Browser, request: pytest.FixtureRequest, keep: Keep) -> Iterator[Opened]:
    """Return what opens a JupyterLab in a browser; no test may talk to any other origin, or raise in the page."""
    screens: list[Screen] = []

    def open_screen(lab: Lab, **arguments: int) -> Screen:
        screens.append(Screen(browser, lab, **arguments))
        return screens[-1]

    yield open_screen
    if request.node.stash.get(FAILED, False):
        for number, screen in enumerate(screens):
            keep(screen, f"failed-{request.node.name}-{number}")
    found = [(screen.other_origins, screen.errors) for screen in screens]
    for screen in screens:
        screen.close()
        screen.lab.end_kernels()
        screen.lab.restore_settings()
    for other_origins, errors in found:
        assert not other_origins
        assert not errors


@pytest.fixture
def screen(opened: Opened, lab: Lab) -> Screen:
    """A page with the JupyterLab that all tests share."""
    return opened(lab)


@pytest.fixture
def master_page(browser: Browser, master: MasterAnswers, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of the browser, signed in at the master's own address; no other origin is asked, and nothing is raised."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    page.on("pageerror", lambda error: errors.append(error.stack or str(error)))
    link = page_link(master, "/experiments")
    page.goto(link)
    page.locator(".det-topbar").wait_for()
    yield page
    folder = os.environ.get("DET_SCREENSHOTS")
    if folder and request.node.stash.get(FAILED, False):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"failed-{request.node.name}.png"))
    context.close()
    origin = link.partition("/#")[0]
    assert [url for url in asked if not url.startswith((f"{origin}/", "data:", "blob:"))] == []
    assert errors == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note a failure, so that a picture of the page can be kept."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def keep() -> Keep:
    """Return what keeps a picture, in the folder that ``DET_SCREENSHOTS`` names."""

    def keep_picture(screen: Screen, name: str) -> None:
        folder = os.environ.get("DET_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            screen.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    return keep_picture


@pytest.fixture(autouse=True)
def _no_experiment_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stop what a test has left running, so that the next finds free slots; start a master that one has killed."""
    yield
    if "home" not in request.fixturenames:
        return
    home = request.getfixturevalue("home")
    if read_runtime(home) is None:
        start_master(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        session = connect(start=False)
        for experiment in session.call(routes.LIST_EXPERIMENTS):
            if not experiment.state.terminal:
                session.call(routes.KILL_EXPERIMENT, experiment_id=experiment.id)
