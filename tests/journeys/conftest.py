"""One master for all journeys, as one machine has it; a kernel for each module; a helper for scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from journey_kernel import Notebook, Script

from det_native.client.connect import connect
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime


@pytest.fixture(scope="session")
def journey_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a running master, started as from a shell, and taken down at the end with all that it started."""
    home, temporary = Home(tmp_path_factory.mktemp("journey-home")), tmp_path_factory.mktemp("journey-temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        patch.setenv("DET_SLOTS", "cpu:2")
        patch.setenv("TMPDIR", str(temporary))
        subprocess.run([sys.executable, "-m", "det_native.client.command", "up"], check=True, capture_output=True)
        runtime = read_runtime(home)
        assert runtime is not None
    master = psutil.Process(runtime.pid)
    yield home
    started = master.children(recursive=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        connect(start=False).call(routes.SHUT_DOWN, kill=True)
    _, alive = psutil.wait_procs([master, *started], timeout=240)
    assert not alive, [process.cmdline() for process in alive]
    assert not list(temporary.iterdir())


@pytest.fixture(scope="session")
def environment(journey_home: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a user's shell; libraries keep caches in the temporary folder."""
    temporary = str(tmp_path_factory.mktemp("kernels-temporary"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "PYTEST_"))}
    own = {"DET_HOME": str(journey_home.path), "TMPDIR": temporary}
    return {**kept, **own, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Notebook]:
    """A fresh notebook in a folder of its own, open for the whole module."""
    opened = Notebook(tmp_path_factory.mktemp("notebook"), environment)
    yield opened
    opened.close()


@pytest.fixture
def at_home(journey_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The journeys' home as the home of this process: handles made here find the master."""
    monkeypatch.setenv("DET_HOME", str(journey_home.path))
    return journey_home


@pytest.fixture
def script(environment: dict[str, str]) -> Script:
    """Run a program in a folder as from a shell; its output must be free of tracebacks unless it is to fail."""

    def run(*arguments: str, folder: Path, fails: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert (done.returncode != 0) == fails, f"{done.stdout}\n{done.stderr}"
        return done

    return run
