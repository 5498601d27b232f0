"""One master and JupyterLab for all tests of a process, a browser for each; pictures are kept if a folder is named."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from browser_masters import start_master, stop_master
from browser_parts import CHROMIUM_ARGUMENTS, Keep, Lab, Opened, Screen, chromium

from det_native.client.connect import connect
from det_native.client.session import Session
from det_native.schema.home import Home, read_runtime

playwright_api = pytest.importorskip("playwright.sync_api")

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
def master(home: Home, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session with the master."""
    monkeypatch.setenv("DET_HOME", str(home.path))
    return connect(start=False)


@pytest.fixture(scope="module")
def _playwright() -> Iterator[object]:
    # Not for the session: while it is there, an event loop runs in this thread, and other tests want their own.
    if chromium() is None:
        pytest.skip("No chromium here: `apt-get install chromium`, or run tools/system_packages.sh as root.")
    # Playwright's own 5 s are short where trainings and other tests share two cores.
    playwright_api.expect.set_options(timeout=20_000)
    with playwright_api.sync_playwright() as playwright:
        yield playwright


@pytest.fixture
def opened(_playwright: object, request: pytest.FixtureRequest, keep: Keep) -> Iterator[Opened]:
    """Return what opens a JupyterLab in a browser; no test may talk to any other origin, or raise in the page."""
    browsers, screens, labs = [], [], []

    def open_screen(lab: Lab, **arguments: int) -> Screen:
        browser = _playwright.chromium.launch(  # type: ignore[attr-defined]
            executable_path=chromium(), headless=True, args=CHROMIUM_ARGUMENTS
        )
        browsers.append(browser)
        labs.append(lab)
        screen = Screen(browser, lab, **arguments)
        screens.append(screen)
        return screen

    yield open_screen
    if request.node.stash.get(FAILED, False):
        for number, screen in enumerate(screens):
            keep(screen, f"failed-{request.node.name}-{number}")
    found = [(screen.other_origins, screen.errors) for screen in screens]
    for browser in browsers:
        browser.close()
    for lab in labs:
        lab.end_kernels()
        lab.restore_settings()
    for other_origins, errors in found:
        assert not other_origins
        assert not errors


@pytest.fixture
def screen(opened: Opened, lab: Lab) -> Screen:
    """A page with the JupyterLab that all tests share."""
    return opened(lab)


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
        for experiment in session.get("/experiments"):
            if experiment["state"] not in ("COMPLETED", "CANCELED", "ERROR", "DELETED"):
                session.post(f"/experiments/{experiment['id']}/kill")
