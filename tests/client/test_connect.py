"""Finding and starting the master: real masters in homes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
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
from det_native.master.launch.tree import MARKER_VARIABLE
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.processes import is_alive, start_mark, wait_until_gone

pytestmark = pytest.mark.slow

CONNECT = "from det_native.client.connect import connect; print(connect().url)"
Det = Callable[..., "subprocess.CompletedProcess[str]"]


def stop(runtime: RuntimeFile, number: signal.Signals) -> None:
    """End a master and wait for it."""
    os.kill(runtime.pid, number)
    assert wait_until_gone(runtime.pid, runtime.start, 120)


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


@pytest.fixture
def home() -> Iterator[Home]:
    """The test's own home; the master that runs there in the end is stopped."""
    found = Home.default()
    yield found
    runtime = read_runtime(found)
    if runtime is not None:
        stop(runtime, signal.SIGTERM)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose master three processes have started at once, all of which have ended."""
    found = Home(tmp_path_factory.mktemp("shared-home"))
    found.path.chmod(0o755)
    found.token.write_text("x" * 43)
    found.token.chmod(0o644)
    environment = {**os.environ, "DET_HOME": str(found.path), "DET_SLOTS": "cpu:3", "JPY_API_TOKEN": "of-the-hub"}
    starters = [
        subprocess.Popen([sys.executable, "-c", CONNECT], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    answers = [starter.communicate(timeout=240)[0].splitlines() for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0, 0]
    (found.path / "answers").write_text("\n".join(" ".join(lines) for lines in answers))
    yield found
    stop(running(found), signal.SIGTERM)


@pytest.fixture
def shared(started: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The shared home as this test's own; the master must be left running."""
    monkeypatch.setenv("DET_HOME", str(started.path))
    return started


@pytest.fixture
def det() -> Det:
    """Run the command."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from det_native.client.command import main; main()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    return run


class TestStartedOnce:
    def test_three_at_once_start_one_and_one_says_so(self, shared: Home) -> None:
        answers = (shared.path / "answers").read_text().splitlines()
        assert {line.split()[-1] for line in answers} == {running(shared).url}
        assert sum("Started a master" in line for line in answers) == 1
        assert all("det down" in line for line in answers if "Started" in line)
        assert len(masters(shared)) == 1

    def test_it_outlives_them_and_is_found_again(self, shared: Home, capsys: pytest.CaptureFixture[str]) -> None:
        assert os.getsid(running(shared).pid) == running(shared).pid
        session = connect()
        assert session.call(routes.GET_MASTER).pid == running(shared).pid
        assert connect() is session
        assert capsys.readouterr().out == ""

    def test_only_its_owner_can_read_what_it_keeps(self, shared: Home) -> None:
        assert mode(shared.path) == 0o700
        assert [mode(path) for path in (shared.token, shared.runtime, shared.log)] == [0o600] * 3
        token = read_token(shared) or ""
        assert len(token) == 43
        assert token != "x" * 43, "others could read that one"
        for text in (shared.log.read_text(), " ".join(masters(shared)[0].cmdline()), shared.runtime.read_text()):
            assert token not in text

    def test_others_cannot_read_its_database(self, shared: Home) -> None:
        found = {path.name: mode(path) for path in shared.path.glob("det.db*")}
        assert "det.db" in found
        assert set(found.values()) == {0o600}

    def test_secrets_of_a_kernel_do_not_reach_it(self, shared: Home) -> None:
        assert "JPY_API_TOKEN" not in masters(shared)[0].environ()

    def test_the_runtime_file_says_who_runs(self, shared: Home) -> None:
        runtime = running(shared)
        assert (runtime.protocol, runtime.version) == (PROTOCOL, __version__)
        assert runtime.start == start_mark(runtime.pid)

    def test_a_wrong_token_is_told(self, shared: Home) -> None:
        with pytest.raises(AuthenticationError, match="refuses the token"):
            Session(running(shared).url, "wrong").call(routes.GET_MASTER)


class TestNamed:
    def test_an_argument_comes_before_the_environment(self, shared: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
        assert connect(running(shared).url).url == running(shared).url

    @pytest.mark.parametrize("name", ["DET_MASTER", "DET_MASTER_ADDR"])
    def test_variables_name_a_master(
        self, shared: Home, monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(name, running(shared).url)
        monkeypatch.setenv("DET_TOKEN", read_token(shared) or "")
        monkeypatch.setenv("DET_HOME", str(tmp_path / "elsewhere"))
        assert connect().call(routes.GET_MASTER).home == str(shared.path)
        assert not (tmp_path / "elsewhere").exists()

    def test_no_master_is_started_in_place_of_a_named_one(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DET_TOKEN", "t")
        with pytest.raises(MasterUnreachableError, match=r"127\.0\.0\.1:1"):
            connect("127.0.0.1:1")
        assert read_runtime(home) is None

    def test_the_variable_that_names_one_that_does_not_answer_is_told(
        self, det: Det, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DET_TOKEN", "t")
        monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
        assert "DET_MASTER points there" in det("status").stderr
        with pytest.raises(MasterUnreachableError) as caught:
            connect("127.0.0.1:1")
        assert "DET_MASTER" not in str(caught.value)
        assert "The call names it (master_url, -m); without it, the master of this machine" in str(caught.value)

    def test_a_worker_reaches_none_and_starts_none(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(MARKER_VARIABLE, "of-the-launcher")
        with pytest.raises(MasterUnreachableError, match=r"values=.*checkpoint\.download\(\)"):
            connect()
        assert not list(home.path.iterdir())

    def test_without_a_token_nothing_is_asked(self) -> None:
        with pytest.raises(
            AuthenticationError, match=r"DET_TOKEN\. .* SSH, write ssh://cluster.example\. The call names it"
        ):
            connect("https://cluster.example")
        with pytest.raises(ArgumentError, match="in the clear"):
            connect("http://cluster.example")


class TestStarting:
    @pytest.mark.long
    def test_after_sigkill_the_next_has_the_same_address_and_token(
        self, home: Home, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = connect()
        assert capsys.readouterr().out.count("\n") == 1
        token = read_token(home)
        stop(running(home), signal.SIGKILL)
        assert home.runtime.exists()
        with pytest.raises(MasterUnreachableError, match="det up"):
            connect(start=False)
        second = connect()
        assert second is not first
        assert (second.url, read_token(home)) == (first.url, token)
        assert first.call(routes.GET_MASTER).pid == running(home).pid
        stop(running(home), signal.SIGTERM)
        assert not home.runtime.exists()
        assert home.token.exists()

    @pytest.mark.long
    @pytest.mark.parametrize("left", ["the number of another process", "garbage"])
    def test_what_a_dead_master_left_is_not_believed(self, home: Home, left: str) -> None:
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

    @pytest.mark.long
    def test_a_start_that_fails_shows_the_end_of_the_log(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DET_SLOTS", "many")
        with pytest.raises(MasterStartError, match=r"(?s)did not start.*'many' is no number of slots"):
            connect()
        assert not masters(home)


class TestCommand:
    @pytest.mark.long
    def test_it_shows_what_runs(self, det: Det, shared: Home) -> None:
        status = det("status")
        assert status.returncode == 0
        assert "0 of 3 busy (3 cpu)" in status.stdout
        assert str(shared.path) in status.stdout
        assert f"master {__version__}" in det("version").stdout
        assert json.loads(det("version", "--json").stdout)["master"]["version"] == __version__
        assert det("--version").stdout == f"det_native {__version__} (protocol {PROTOCOL})\n"
        assert det("e", "ls").stdout == det("exp", "list").stdout == det("experiment", "list").stdout
        assert "no experiments yet" in det("experiment", "list").stdout
        assert "answers at" in det("logs").stdout
        again = det("up", "--slots", "1")
        assert again.returncode == 1
        assert "runs already" in again.stdout
        assert "without --slots 1: `det down` first, then `det up --slots 1`" in again.stderr
        for same in ("3", "cpu:3"):
            assert det("up", "--slots", same).returncode == 0
        wrong = det("up", "--slots", "foo")
        assert wrong.returncode == 2
        assert "'foo' is no number of slots" in wrong.stderr

    @pytest.mark.long
    def test_errors_are_one_sentence(self, det: Det, shared: Home) -> None:
        missing = det("experiment", "kill", "7")
        assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
        assert "7" in missing.stderr
        assert running(shared).url in missing.stderr
        assert "det experiment list" in missing.stderr
        assert det("logs", "seven").returncode == 2

    @pytest.mark.long
    def test_where_none_runs(self, det: Det, home: Home) -> None:
        assert det("status").returncode == 3
        assert "No master runs" in det("down").stdout
        listed = det("experiment", "list")  # there are none of a master that ran before
        assert (listed.returncode, listed.stdout) == (0, "There are no experiments yet.\n")
        failed = det("experiment", "kill", "1")
        assert failed.returncode == 3
        assert failed.stderr.startswith("Error: No master runs")
        assert failed.stderr.count("\n") == 1
        assert det("logs").returncode == 1

    @pytest.mark.long
    @pytest.mark.parametrize("how", [(), ("--kill",)])
    def test_up_and_down(self, det: Det, home: Home, how: tuple[str, ...]) -> None:
        up = det("up")
        assert up.returncode == 0
        assert running(home).url in up.stdout
        down = det("down", *how)
        assert (down.returncode, down.stderr) == (0, "")
        assert read_runtime(home) is None

    @pytest.mark.long
    def test_a_port_that_the_running_master_does_not_have_is_an_error(self, det: Det, home: Home) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = str(unused.getsockname()[1])
        options = ("--port", port, "--slots", "cpu:1")
        assert det("up", *options).returncode == 0
        same = det("up", *options, "--host", "127.0.0.1")
        assert (same.returncode, same.stderr) == (0, "")
        other = det("up", "--port", "1", "--host", "localhost", "--slots", "1")
        assert other.returncode == 1
        assert "without --port 1 and --host localhost: `det down` first, then `det up " in other.stderr
        assert "runs already" in det("up").stdout

    @pytest.mark.long
    def test_beyond_this_machine_only_with_tls(self, det: Det, home: Home) -> None:
        refused = det("up", "--host", "0.0.0.0")
        assert refused.returncode == 1
        assert "--tls-cert" in refused.stderr
        assert read_runtime(home) is None


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

    @pytest.mark.long
    def test_waiting_ends_when_time_is_up(self) -> None:
        mark = start_mark(os.getpid()) or ""
        assert not wait_until_gone(os.getpid(), mark, 0.05)
