"""Finding and starting the master: real masters in homes of their own."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from det_native import PROTOCOL, __version__
from det_native.client.connect import connect
from det_native.client.home import read_token
from det_native.client.session import Session
from det_native.errors import (
    ArgumentError,
    AuthenticationError,
    MasterStartError,
    MasterUnreachableError,
)
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.processes import is_alive, start_mark, wait_until_gone

pytestmark = pytest.mark.slow

CONNECT = "from det_native.client.connect import connect; print(connect().url)"


@pytest.fixture
def home() -> Iterator[Home]:
    """The test's own home; the master that runs there in the end is stopped."""
    found = Home.default()
    yield found
    runtime = read_runtime(found)
    if runtime is not None:
        stop(runtime, signal.SIGTERM)


def stop(runtime: RuntimeFile, number: signal.Signals) -> None:
    """End a master and wait for it."""
    os.kill(runtime.pid, number)
    assert wait_until_gone(runtime.pid, runtime.start, 30)


def running(home: Home) -> RuntimeFile:
    """Return who runs."""
    found = read_runtime(home)
    assert found is not None
    return found


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def masters(home: Home) -> list[psutil.Process]:
    """Return the processes that are a master of this home."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if "det_native.master" in (process.info["cmdline"] or []) and str(home.path) in process.info["cmdline"]
    ]


def test_a_master_is_started_once_and_found_again(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    session = connect()
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert session.url in said
    assert "det down" in said
    assert session.get("/master")["pid"] == running(home).pid
    assert connect() is session
    assert capsys.readouterr().out == ""
    assert running(home).protocol == PROTOCOL
    assert running(home).version == __version__


def test_only_its_owner_can_read_what_it_keeps(home: Home) -> None:
    home.path.chmod(0o755)
    connect()
    assert mode(home.path) == 0o700
    assert [mode(path) for path in (home.token, home.runtime, home.log)] == [0o600] * 3
    token = read_token(home)
    assert token is not None
    assert len(token) >= 43
    assert token not in home.log.read_text()
    assert token not in " ".join(masters(home)[0].cmdline())
    assert token not in home.runtime.read_text()


def test_it_outlives_the_process_that_started_it(home: Home) -> None:
    subprocess.run([sys.executable, "-c", CONNECT], check=True, capture_output=True)
    runtime = running(home)
    assert os.getsid(runtime.pid) == runtime.pid
    assert Session(runtime.url, read_token(home) or "").health().protocol == PROTOCOL


def test_two_at_once_start_one(home: Home) -> None:
    starters = [subprocess.Popen([sys.executable, "-c", CONNECT], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [starter.communicate(timeout=120)[0].splitlines() for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0, 0]
    assert len({lines[-1] for lines in answers}) == 1
    assert sum(len(lines) == 2 for lines in answers) == 1
    assert len(masters(home)) == 1


@pytest.mark.parametrize("left", ["own pid of another start", "garbage"])
def test_what_a_dead_master_left_is_not_believed(home: Home, left: str) -> None:
    stale = RuntimeFile(
        url="http://127.0.0.1:1",
        pid=os.getpid(),
        start="another-boot:17",
        version=__version__,
        protocol=PROTOCOL,
        python=sys.executable,
        started="",
    )
    home.runtime.write_text("{not json" if left == "garbage" else stale.model_dump_json())
    with pytest.raises(MasterUnreachableError, match="det up"):
        connect(start=False)
    assert connect().health().protocol == PROTOCOL


def test_after_sigkill_the_next_one_has_the_same_address_and_token(home: Home) -> None:
    first = connect()
    token = read_token(home)
    stop(running(home), signal.SIGKILL)
    assert read_runtime(home) is None
    second = connect()
    assert second is not first
    assert (second.url, read_token(home)) == (first.url, token)
    assert first.get("/master")["pid"] == running(home).pid


def test_a_clean_stop_withdraws_the_runtime_file(home: Home) -> None:
    connect()
    stop(running(home), signal.SIGTERM)
    assert not home.runtime.exists()
    assert home.token.exists()


def test_a_token_that_others_could_read_is_replaced(home: Home) -> None:
    home.token.write_text("x" * 43)
    home.token.chmod(0o644)
    connect()
    assert read_token(home) != "x" * 43
    assert mode(home.token) == 0o600


def test_a_start_that_fails_shows_the_end_of_the_log(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_SLOTS", "many")
    with pytest.raises(MasterStartError, match=r"(?s)did not start.*'many' is no number of slots"):
        connect()
    assert not masters(home)


def test_the_secrets_of_the_kernel_do_not_reach_the_master(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_API_TOKEN", "of-the-hub")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    connect()
    environment = masters(home)[0].environ()
    assert not {"JPY_API_TOKEN", "MPLBACKEND"} & set(environment)


class TestNamed:
    def test_an_argument_comes_before_the_environment(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        url = connect().url
        monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
        assert connect(url).url == url

    @pytest.mark.parametrize("name", ["DET_MASTER", "DET_MASTER_ADDR"])
    def test_variables_name_a_master(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
    ) -> None:
        url, token = connect().url, read_token(home)
        monkeypatch.setenv(name, url)
        monkeypatch.setenv("DET_TOKEN", token or "")
        monkeypatch.setenv("DET_HOME", str(tmp_path / "elsewhere"))
        assert connect().get("/master")["home"] == str(home.path)
        assert not (tmp_path / "elsewhere").exists()

    def test_no_master_is_started_in_place_of_a_named_one(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DET_TOKEN", "t")
        with pytest.raises(MasterUnreachableError, match=r"127\.0\.0\.1:1"):
            connect("127.0.0.1:1")
        assert read_runtime(home) is None

    def test_without_a_token_nothing_is_asked(self) -> None:
        with pytest.raises(AuthenticationError, match="DET_TOKEN"):
            connect("https://cluster.example")
        with pytest.raises(ArgumentError, match="in the clear"):
            connect("http://cluster.example")

    def test_a_wrong_token_is_told(self, home: Home) -> None:
        session = Session(connect().url, "wrong")
        with pytest.raises(AuthenticationError, match="refuses the token"):
            session.get("/master")


class TestCommand:
    @pytest.fixture
    def det(self, home: Home) -> Callable[..., subprocess.CompletedProcess[str]]:
        """Run the command."""

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", "from det_native.client.command import main; main()", *arguments]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

        return run

    def test_up_status_down(self, det: Callable[..., subprocess.CompletedProcess[str]], home: Home) -> None:
        assert det("status").returncode == 3
        up = det("up", "--slots", "cpu:3")
        assert up.returncode == 0
        assert running(home).url in up.stdout
        again = det("up", "--slots", "1")
        assert again.returncode == 0
        assert "runs already" in again.stdout
        assert "no effect" in again.stderr
        status = det("status")
        assert status.returncode == 0
        assert "0 of 3 busy (3 cpu)" in status.stdout
        assert str(home.path) in status.stdout
        assert f"master {__version__}" in det("version").stdout
        assert "no experiments yet" in det("experiment", "list").stdout
        down = det("down")
        assert (down.returncode, down.stderr) == (0, "")
        assert read_runtime(home) is None
        assert "No master runs" in det("down").stdout

    def test_down_with_kill_and_the_log(self, det: Callable[..., subprocess.CompletedProcess[str]], home: Home) -> None:
        assert det("logs").returncode == 1
        det("up")
        assert "answers at" in det("logs").stdout
        down = det("down", "--kill")
        assert (down.returncode, down.stderr) == (0, "")
        assert read_runtime(home) is None

    def test_errors_are_one_sentence(self, det: Callable[..., subprocess.CompletedProcess[str]], home: Home) -> None:
        for arguments in (("experiment", "kill", "7"), ("logs", "7"), ("experiment", "list")):
            failed = det(*arguments)
            assert failed.returncode == 1
            assert failed.stderr.startswith("Error: No master runs")
            assert failed.stderr.count("\n") == 1
        det("up")
        missing = det("experiment", "kill", "7")
        assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
        assert "7" in missing.stderr
        assert det("logs", "seven").returncode == 2
        assert det("nonsense").returncode == 2

    def test_beyond_this_machine_only_with_tls(
        self, det: Callable[..., subprocess.CompletedProcess[str]], home: Home
    ) -> None:
        refused = det("up", "--host", "0.0.0.0")
        assert refused.returncode == 1
        assert "--tls-cert" in refused.stderr
        assert read_runtime(home) is None

    def test_a_port_in_use_is_told(self, det: Callable[..., subprocess.CompletedProcess[str]], home: Home) -> None:
        import socket

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            refused = det("up", "--port", str(taken.getsockname()[1]))
        assert refused.returncode == 1
        assert "cannot listen" in refused.stderr


class TestProcesses:
    def test_a_mark_tells_a_process_from_a_later_one(self) -> None:
        mark = start_mark(os.getpid())
        assert mark is not None
        assert is_alive(os.getpid(), mark)
        assert not is_alive(os.getpid(), mark + "0")

    def test_a_zombie_counts_as_gone(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE) as child:
            mark = start_mark(child.pid) or ""
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert not is_alive(child.pid, mark)
            assert wait_until_gone(child.pid, mark, 0)

    def test_waiting_ends_when_time_is_up(self) -> None:
        mark = start_mark(os.getpid()) or ""
        assert not wait_until_gone(os.getpid(), mark, 0.05)


def test_the_runtime_file_is_what_its_readers_expect(home: Home) -> None:
    connect()
    found = json.loads(home.runtime.read_text())
    assert set(found) == {"url", "pid", "start", "version", "protocol", "python", "started"}
