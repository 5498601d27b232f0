"""A real master that is stopped by a signal: every command says so within seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from det_native.client import silence
from det_native.client.session import Session
from det_native.client.starting import ensure_master
from det_native.errors import MasterUnreachableError
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.processes import wait_until_gone

pytestmark = pytest.mark.slow

PATIENCE = 60.0
# Five seconds are promised; a machine that does much else at the time may take longer to start the command.
LIMIT = 20.0
COMMAND = [sys.executable, "-P", "-m", "det_native.client.command"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a master of these tests' own."""
    found = Home(tmp_path_factory.mktemp("silence"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_SLOTS", "cpu:1")
        started = ensure_master(found).runtime
    yield found
    os.kill(started.pid, signal.SIGTERM)
    assert wait_until_gone(started.pid, started.start, PATIENCE)


@pytest.fixture
def runtime(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[RuntimeFile]:
    """The master, which goes on after each test."""
    monkeypatch.setenv("DET_HOME", str(home.path))
    started = read_runtime(home)
    assert started is not None
    yield started
    os.kill(started.pid, signal.SIGCONT)


@pytest.mark.parametrize("arguments", [["status"], ["experiment", "list"], ["trial", "describe", "1"]])
@pytest.mark.long
def test_a_question_to_a_stopped_master_ends_with_an_error(runtime: RuntimeFile, arguments: list[str]) -> None:
    os.kill(runtime.pid, signal.SIGSTOP)
    asked = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert asked.returncode == 1
    assert f"`kill -CONT {runtime.pid}` lets it go on" in asked.stderr.splitlines()[-1]


def test_a_stopped_master_is_told_by_down_and_version_at_once(runtime: RuntimeFile) -> None:
    os.kill(runtime.pid, signal.SIGSTOP)
    told = [
        subprocess.run([*COMMAND, name], capture_output=True, text=True, timeout=PATIENCE, check=False)
        for name in ("down", "version")
    ]
    assert told[0].returncode == 1
    assert f"is stopped by a signal and cannot end: `kill -CONT {runtime.pid}`" in told[0].stderr
    assert f"stopped by a signal (kill -CONT {runtime.pid})" in told[1].stdout
    os.kill(runtime.pid, signal.SIGCONT)
    assert runtime.alive  # it was sent nothing that would end it now


@pytest.mark.parametrize(
    "arguments", [["experiment", "kill", "1"], pytest.param(["logs", "1"], marks=pytest.mark.soak)]
)
def test_a_stopped_master_is_told_and_a_waiting_command_goes_on_when_it_does(
    runtime: RuntimeFile, arguments: list[str]
) -> None:
    os.kill(runtime.pid, signal.SIGSTOP)
    begun = time.monotonic()
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as command:
        assert command.stderr is not None
        told = command.stderr.readline()
        assert time.monotonic() - begun < LIMIT
        assert told == (
            f"Warning: The master at {runtime.url} does not answer; still waiting. Its process {runtime.pid} is "
            f"stopped by a signal; `kill -CONT {runtime.pid}` lets it go on.\n"
        )
        os.kill(runtime.pid, signal.SIGCONT)
        _, errors = command.communicate(timeout=PATIENCE)
    assert command.returncode == 1
    assert "does not answer" not in errors


@pytest.mark.long
def test_a_request_that_is_given_up_says_why(runtime: RuntimeFile) -> None:
    session = Session(runtime.url, Home.default().token.read_text().strip())
    os.kill(runtime.pid, signal.SIGSTOP)
    told = rf"in time\. Its process {runtime.pid} is stopped by a signal"
    with pytest.raises(MasterUnreachableError, match=told), session.stream(routes.GET_MASTER, timeout=0.5):
        pass
    session.close()


@pytest.mark.long
def test_a_master_that_is_busy_with_the_request_is_not_told(
    runtime: RuntimeFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = threading.Semaphore(0)
    probe = silence._tells_health
    monkeypatch.setattr(silence, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(silence, "_PROBE_SECONDS", PATIENCE)
    monkeypatch.setattr(silence, "_tells_health", lambda url: (probe(url), asked.release())[0])
    with silence.told_if_silent(runtime.url, runtime.url):
        for _ in range(2):
            assert asked.acquire(timeout=PATIENCE)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("load", "said"), [(1e6, "The machine is busy"), (0.0, "`det down` and `det up`")])
def test_nobody_is_advised_to_kill_a_master(
    runtime: RuntimeFile, monkeypatch: pytest.MonkeyPatch, load: float, said: str
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    reason = silence.reason_of_silence(runtime.url)
    assert said in reason
    assert "kill" not in reason
    assert ("det down" in reason) is (load == 0)
