"""A real JupyterLab in a real browser: starting it, and driving it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from playwright.sync_api import Browser, Locator, Page, Request, Response
from playwright.sync_api import TimeoutError as PlaywrightTimeout

TOKEN = "a-token-of-jupyter"
# Long, for what it waits for always comes: other tests, trainings and browsers share the machine's two cores.
PATIENCE = 150.0
PANEL_TAB = 'li[data-id="det-native-experiments"]'
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_CONFIG = """
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = {port}
c.ServerApp.port_retries = 0
c.ServerApp.base_url = "/hub/user/"
c.ServerApp.root_dir = {root!r}
# No page asks whether JupyterLab should be built anew, for which the server runs yarn.
c.ServerApp.tornado_settings = {{
    "page_config_data": {{"buildAvailable": False, "buildCheck": False}},
    "headers": {headers},
}}
c.IdentityProvider.token = {token!r}
c.LabApp.extension_manager = "readonly"
c.LabApp.check_for_updates_class = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
c.LabApp.news_url = None
c.LabApp.expose_app_in_browser = True
# A kernel with PyTorch takes seconds to leave of itself: nothing here looks at how it does.
c.KernelManager.shutdown_wait_time = 1.0
"""

# Jupyter Server gives a page that comes back what the kernel said meanwhile with the routing frames before it, which
# JupyterLab cannot read. Those messages are lost, whoever sends them and whatever they are about: their first frame is
# "comm-...", "kernel.<id>.status", "stream.stdout", or the name of who asked.
_REPLAYED = re.compile(r"Kernel message validation error: .*\bJSON\b")
_AT_REST = """() => {
  const shell = window.jupyterapp?.shell;
  const notebook = shell && [shell.currentWidget, ...shell.widgets('main')].find(widget => widget?.sessionContext);
  const kernel = notebook?.sessionContext.session?.kernel;
  return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}"""


def wait_until(fits: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return the first true value of `fits`."""
    deadline = time.monotonic() + seconds
    while True:
        value = fits()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.1)


class Lab:
    """A JupyterLab server in a process of its own, with nothing of the user's.

    Parameters
    ----------
    folder : Path
        Its root is ``folder / "root"``.
    home : Path
        ``DET_HOME`` of the server and of its kernels.
    theme : str
    environment : dict, optional
        More environment variables.
    headers : dict, optional
        Sent with every answer.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        theme: str = "JupyterLab Light",
        environment: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.root = folder / "root"
        self.root.mkdir(parents=True)
        self.home = home
        self.data = folder / "data"
        self._log = folder / "lab.log"
        own = {f"JUPYTER_{name.upper()}_DIR": folder / name for name in ("config", "data", "runtime")}
        own |= {f"JUPYTERLAB_{name.upper()}_DIR": folder / name for name in ("settings", "workspaces")}
        own["IPYTHONDIR"] = folder / "ipython"
        for path in own.values():
            path.mkdir()
        self._settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
        self._settings.mkdir(parents=True)
        self._theme = theme
        self.restore_settings()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = folder / "jupyter_config.py"
        settings = {"port": port, "root": str(self.root), "token": TOKEN, "headers": headers or {}}
        config.write_text(_CONFIG.format(**settings))
        self.origin = f"http://127.0.0.1:{port}"
        self.base = f"{self.origin}/hub/user/"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DET_", "PYTEST_", "JUPYTER"))
        }
        variables = {
            **kept,
            **{name: str(path) for name, path in own.items()},
            "DET_HOME": str(home),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **(environment or {}),
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", f"--config={config}"],
                env=variables,
                cwd=self.root,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"token {TOKEN}"
        wait_until(self._is_up, "JupyterLab is up")

    @property
    def log(self) -> str:
        """What the server has written."""
        return self._log.read_text(errors="replace")

    def request(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """Ask the server, as its owner."""
        return self._session.request(method, f"{self.base}{path}", timeout=PATIENCE, **arguments)

    def kernel_states(self) -> list[str]:
        """Return what the kernels are doing, as the server sees it."""
        return [kernel["execution_state"] for kernel in self.request("GET", "api/kernels").json()]

    def end_kernels(self) -> None:
        """End all kernels, as closing them in the front end does."""
        if self._process.poll() is not None:
            return
        for session in self.request("GET", "api/sessions").json():
            self.request("DELETE", f"api/sessions/{session['id']}")
        for kernel in self.request("GET", "api/kernels").json():
            self.request("DELETE", f"api/kernels/{kernel['id']}")

    def restore_settings(self) -> None:
        """Have the next page find the settings of the beginning, whatever theme was chosen since."""
        notification = '{"fetchNews": "false", "checkForUpdates": false}'
        (self._settings / "notification.jupyterlab-settings").write_text(notification)
        (self._settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": self._theme}))

    def kill(self) -> None:
        """End the server without a warning."""
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        """End the server, if it runs."""
        if self._process.poll() is not None:
            self._session.close()
            return
        self.end_kernels()
        self._session.close()
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            # It has shut down, but a thread of AnyIO that read files for it may still wait for work, for ever.
            self._process.kill()
            self._process.wait(30)

    def _is_up(self) -> bool:
        assert self._process.poll() is None, self.log
        try:
            return self.request("GET", "api/status").ok
        except requests.ConnectionError:
            return False


class Screen:
    """One page of the browser with a JupyterLab in it; keeps what it asked the network for."""

    def __init__(self, browser: Browser, lab: Lab, *, width: int = 1300, height: int = 900) -> None:
        self.lab = lab
        context = browser.new_context(viewport={"width": width, "height": height})
        self.page: Page = context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self._before = ""
        self._loads = int(bool(lab.kernel_states()))  # kernels that go on are those of a page before this one
        self.page.on("domcontentloaded", lambda _: self._note_load())
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.on("pageerror", lambda error: self._note_error(error.stack or str(error)))

    def _note_load(self) -> None:
        self._loads += 1

    def _note_error(self, error: str) -> None:
        comes_back = self._loads > 1
        if not (comes_back and _REPLAYED.search(error)):
            self.errors.append(error)

    def open(self, notebook: Path | None = None, *, reset: bool = True) -> None:
        """Load JupyterLab, with a notebook and its kernel."""
        tree = f"/tree/{notebook.relative_to(self.lab.root)}" if notebook else ""
        self.page.goto(f"{self.lab.base}lab{tree}?token={TOKEN}{'&reset' if reset else ''}")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")
        if notebook:
            self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
            self.wait_for_kernel()

    def open_beside(self, document: Path) -> None:
        """Open one more document in the page as it is, and wait until it is the one in front."""
        path = str(document.relative_to(self.lab.root))
        self.execute("docmanager:open", path=path)
        self.page.wait_for_function("path => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path)

    def wait_for_kernel(self) -> None:
        """Wait until the notebook is connected to its kernel and that is at rest: before, a cell asks for a kernel."""
        self.page.wait_for_function(_AT_REST)

    def cell(self, number: int) -> Locator:
        """Return a code cell, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def show(self, number: int) -> None:
        """Scroll to a cell, as who looks at its output does: a reload of the page shows the notebook's first cells."""
        self.cell(number).evaluate("cell => cell.scrollIntoView()")

    def run(self, *numbers: int) -> None:
        """Run cells one after the other, and wait for each."""
        for number in numbers:
            self.start(number)
            wait_until(lambda n=number: self._has_run(n), f"cell {number} has run")  # type: ignore[misc]

    def start(self, number: int) -> None:
        """Run a cell without waiting for its end."""
        self.wait_for_kernel()  # a key pressed while JupyterLab still connects to it is lost without a word
        self._before = self.prompt(number)
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        wait_until(lambda: self._runs(number) or self._has_run(number), f"cell {number} starts")

    def run_all(self, count: int) -> None:
        """Run the first `count` cells."""
        self.run(*range(count))

    def prompt(self, number: int) -> str:
        """Return what stands before a cell: ``[3]:``, ``[*]:`` while it runs."""
        return self.cell(number).locator(".jp-InputPrompt").inner_text().strip()

    def save(self) -> None:
        """Save the notebook, until nothing in it is unsaved."""
        dirty = self.page.locator(".jp-mod-dirty, .jp-DocumentTitle-dirty").first

        def clean() -> bool:
            assert self.ask_to_save().ok
            with contextlib.suppress(PlaywrightTimeout):
                dirty.wait_for(state="detached", timeout=1_000)
                return True
            return False  # a live view has changed it since: only another save takes that in

        wait_until(clean, "nothing is unsaved")

    def ask_to_save(self) -> Response:
        """Save the notebook and return the server's answer; live views may have changed it again by then."""
        self.page.locator(".jp-Notebook").first.click(position={"x": 3, "y": 3})
        asked = len(self.requests)
        answers: list[Response] = []

        def is_answer(response: Response) -> bool:
            request = response.request
            saves = request.method == "PUT" and "/api/contents/" in request.url
            return saves and request in self.requests[asked:]

        def note(response: Response) -> None:
            if is_answer(response):
                answers.append(response)

        def answer() -> Response | None:
            # JupyterLab drops the key without a word while it saves already.
            with contextlib.suppress(PlaywrightTimeout), self.page.expect_response(is_answer, timeout=2_000):
                self.page.keyboard.press("Control+s")
            return answers[0] if answers else None

        self.page.on("response", note)
        response: Response = wait_until(answer, "the notebook is saved")
        self.page.remove_listener("response", note)
        return response

    def execute(self, command: str, **arguments: Any) -> None:
        """Execute a command of JupyterLab, as its palette does."""
        # What a command gives is dropped there: a widget hangs on all of JupyterLab, which takes half a minute to send.
        script = "async ([name, given]) => { await window.jupyterapp.commands.execute(name, given); }"
        self.page.evaluate(script, [command, arguments])

    def set_theme(self, dark: bool) -> None:
        """Switch the theme of JupyterLab."""
        theme = f"JupyterLab {'Dark' if dark else 'Light'}"
        self.execute("apputils:change-theme", theme=theme)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=theme)
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def open_panel(self) -> Locator:
        """Open the side panel and return it."""
        panel = self.page.locator("#det-native-experiments")
        if not panel.is_visible():
            self.page.locator(PANEL_TAB).first.click()
        panel.wait_for()
        return panel

    def asked(self, part: str) -> list[str]:
        """Return the addresses of the extension's requests that have `part` in them, in order."""
        return [request.url for request in self.requests if "/det-native/" in request.url and part in request.url]

    def watch_streams(self) -> Callable[[], int]:
        """Return what counts the event streams of the master that this page has open."""
        ended: list[Request] = []
        for event in ("requestfailed", "requestfinished"):
            self.page.on(event, lambda request: ended.append(request))

        def count() -> int:
            self.page.evaluate("0")  # what has happened in the page is told when it is asked for something
            streams = [request for request in self.requests if "/master/events" in request.url]
            return len([stream for stream in streams if stream not in ended])

        return count

    @property
    def other_origins(self) -> list[str]:
        """Return requests that went anywhere but to this JupyterLab."""
        own = {urlsplit(self.lab.origin).netloc, ""}
        return [request.url for request in self.requests if urlsplit(request.url).netloc not in own]

    def close(self) -> None:
        """Close the page."""
        self.page.context.close()

    def _runs(self, number: int) -> bool:
        if "*" in self.prompt(number):
            self._before = ""  # whatever number comes is this run's, also after a restart of the kernel
            return True
        return False

    def _has_run(self, number: int) -> bool:
        now = self.prompt(number)
        return now != self._before and re.search(r"\d", now) is not None


def number_in(text: str) -> int:
    """Return the first whole number of a text, thousands separators left out."""
    found = re.search(r"\d[\d,]*", text)
    assert found, text
    return int(found.group().replace(",", ""))


def chromium() -> str | None:
    """Return the path of the browser, None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


Opened = Callable[..., Screen]
Keep = Callable[[Screen, str], None]
