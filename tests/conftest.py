"""Fixtures for all tests: a home of its own for every test, and a guard that fails a test which leaks something."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from forking.kernel import FOLDER as KERNELS_FOLDER
from forking.kernel import OWNER as KERNELS_OWNER
from forking.kernel import kernel_specification
from hypothesis import settings
from recording import recording_master, until_sent

from det_native.heap import roots
from det_native.kernel_runs.folder import VARIABLE as RECORD
from det_native.schema.home import Home

# How long an example takes says nothing on a machine that others use too.
settings.register_profile("det_native", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("soak", deadline=None, max_examples=10_000)
settings.load_profile("det_native")

# How the tests are divided among processes, what a soak notes, and programs in forks.
pytest_plugins = ["balance", "soak_notes", "forked_programs"]

# Threads that a library keeps for the whole process once used; they hold no resource of a test.
_LIBRARY_THREADS = (
    "pytest_timeout",
    "TMonitor",
    "tqdm_monitor",
    "fsspecIO",
    "pydevd",
    "IPythonHistorySavingThread",
    "asyncio_",
    "AnyIO",
    "IOPub",
)
# Files that stay with the process: the source and byte code of functions that TensorFlow has converted, and a run that
# nobody records as long as something holds its handle.
_LIBRARY_FILES = ("__autograph_generated_file", "__pycache__", "det-run-")
_MARKS_OF_FILE = re.compile(r"^pytestmark = (.*)", re.MULTILINE)
_MARK = re.compile(r"\bpytest\.mark\.(\w+)")
_LEFT_OUT = re.compile(r"\bnot (\w+)")
# Programs of tests replace it where they are imported.
_ROOTS = roots.roots_of_call
# What a test has ended may take so long to be gone.
_LEAVING_SECONDS = 5.0
_LIMIT = pytest.StashKey[Any]()
# JAX sets the last one when it is imported, which TensorFlow does.
_VARIABLES_OF_PYTEST = {"PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "TF_CPP_MIN_LOG_LEVEL"}


@pytest.fixture(autouse=True)
def _no_names_of_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a call in this process look at what it is given: ``__main__`` is pytest's, and tests are around it."""
    monkeypatch.setattr(roots, "roots_of_call", lambda frame=None: ({}, []) if frame is None else _ROOTS(frame))


@pytest.fixture(scope="session", autouse=True)
def _own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Send everything that uses the system's temporary folder to one that the guard can watch."""
    folder = tmp_path_factory.mktemp("system-temporary")
    before, environment = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    yield folder
    tempfile.tempdir = before
    if environment is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = environment


@pytest.fixture(scope="session", autouse=True)
def _forked_kernels() -> Iterator[None]:
    """Have kernels forked from one process that has imported the frameworks, started with the first of them."""
    with tempfile.TemporaryDirectory(prefix="det-kernels-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", kernel_specification(folder))
        patch.setenv(KERNELS_FOLDER, folder)
        patch.setenv(KERNELS_OWNER, str(os.getpid()))
        yield


@pytest.fixture(scope="session", autouse=True)
def _users_home_stays_absent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail if the tests made a home in the user's own data folder, where there was none.

    Fixtures of modules, which start before a test has a home of its own, get one for the session.
    """
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "det_native"
    was_there = data.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(tmp_path_factory.mktemp("det-home-of-session")))
        patch.setenv(RECORD, "off")  # kernels that modules share start no master either
        yield
    assert was_there or not data.exists(), f"tests wrote into {data}: {sorted(data.rglob('*'))[:20]}"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield folders without an end; pytest's own reads all names that there are for each, which takes milliseconds."""
    folder = tmp_path_factory.mktemp("det-homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test away from the user's own master and caches; trainings in its process start no master."""
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("DET_HOME", str(home))
    monkeypatch.setenv(RECORD, "off")
    for name in ("DET_MASTER", "DET_MASTER_ADDR", "DET_TOKEN", "DET_SLOTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def recording_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a master that records what trains in processes of the tests: one master for all of them."""
    with recording_master(Home(tmp_path_factory.mktemp("recording-home"))) as home:
        yield home


@pytest.fixture
def recorded(recording_home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Have trainings of this process recorded by that master."""
    monkeypatch.setenv("DET_HOME", str(recording_home.path))
    monkeypatch.delenv(RECORD)
    yield recording_home
    until_sent()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which every test is of a lane that is left out: it may import a framework."""
    if collection_path.suffix != ".py" or not (left_out := set(_LEFT_OUT.findall(config.option.markexpr))):
        return None
    marks = {mark for line in _MARKS_OF_FILE.findall(collection_path.read_text()) for mark in _MARK.findall(line)}
    return bool(marks & left_out) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count every test of a longer lane as slow, so that none of them is among the quick ones by mistake."""
    for item in items:
        if item.get_closest_marker("long") or item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Note a test's time limit, for `_limit_again`."""
    item.stash[_LIMIT] = settings


def _limit_again(item: pytest.Item) -> None:
    """Start a test's time limit anew.

    pytest-timeout ends the limit where a test fails, so that a debugger may be used: the teardown after that would have
    none, and could hang for ever.
    """
    if _LIMIT in item.stash:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[_LIMIT])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Give the teardown its own time limit."""
    _limit_again(item)


class _Snapshot:
    """What a test must leave as it found it."""

    def __init__(self, temporary: Path) -> None:
        self.children = {child.pid for child in _children()}
        self.threads = set(threading.enumerate())
        self.ports = _listening_ports()
        self.environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES_OF_PYTEST}
        self.files = set(os.listdir(temporary))
        self.directory = os.getcwd()

    def leaks(self, temporary: Path) -> list[str]:
        """Return one line for each thing that is still there."""
        found = []
        new_children = [child for child in _children() if child.pid not in self.children]
        _, alive = psutil.wait_procs(new_children, timeout=_LEAVING_SECONDS)
        found += [f"process {child.pid}: {_command(child)}" for child in alive]
        for thread in set(threading.enumerate()) - self.threads:
            # A dummy thread is a thread of C++ code that has called into Python; it cannot be joined.
            if not thread.name.startswith(_LIBRARY_THREADS) and not isinstance(thread, threading._DummyThread):
                thread._started.wait(timeout=2)  # type: ignore[attr-defined]  # one that is being started is listed too
                thread.join(timeout=_LEAVING_SECONDS / 2)
                if thread.is_alive():
                    found.append(f"thread {thread.name}")
        now = _Snapshot(temporary)
        found += [f"listening port {port}" for port in sorted(now.ports - self.ports)]
        found += [
            f"file {name} in the temporary folder"
            for name in sorted(now.files - self.files)
            if not name.startswith(_LIBRARY_FILES)
        ]
        names = sorted(set(self.environment) | set(now.environment))
        found += [
            f"environment variable {name}" for name in names if self.environment.get(name) != now.environment.get(name)
        ]
        if now.directory != self.directory:
            found.append(f"working directory changed to {now.directory}")
        return found


def _children() -> list[psutil.Process]:
    """Return all processes below this one; quickly, for this is asked thrice a test: psutil reads of all that run."""
    if not Path("/proc/thread-self/children").exists():  # a kernel that does not tell
        return psutil.Process().children(recursive=True)
    found: list[psutil.Process] = []
    waiting = [os.getpid()]
    while waiting:
        for number in _children_of(waiting.pop()):
            waiting.append(number)
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(number))
    return found


def _children_of(process: int) -> list[int]:
    """Return the processes that a process has started and has not waited for yet; none if it is gone."""
    numbers: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError):  # a thread that has just ended
                numbers += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return numbers


def _listening_ports() -> set[int]:
    """Return the ports on which this process listens; the system's table of all connections is long."""
    ports = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself, which is closed by now
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    internet = found.family in (socket.AF_INET, socket.AF_INET6)
                    if internet and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        ports.add(found.getsockname()[1])
    return ports


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return "?"


@pytest.fixture(autouse=True)
def _leaks_fail(_own_temporary_folder: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a process, thread, port, temporary file, environment variable or directory behind.

    Module and session fixtures that a test is the first to use are set up before this one (they are requested here), so
    what they hold is not held against the test.
    """
    for name in request.fixturenames:
        if not name.startswith("_"):
            definitions = request._fixturemanager.getfixturedefs(name, request.node) or ()
            if definitions and definitions[-1].scope != "function":
                request.getfixturevalue(name)
    before = _Snapshot(_own_temporary_folder)
    yield
    leaks = before.leaks(_own_temporary_folder)
    if leaks:
        pytest.fail("The test left behind: " + "; ".join(leaks), pytrace=False)
