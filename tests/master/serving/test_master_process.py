"""The parts of a master's process: settings, token, socket, log."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from det_native.errors import ArgumentError, MasterStartError
from det_native.master import home as home_folder
from det_native.master.config import MasterConfig, parse_arguments
from det_native.master.logs import set_up_logging
from det_native.master.runtime_file import announce, last_port, remember_port, withdraw
from det_native.master.serving import listen, local_socket, tcp_url
from det_native.schema.home import Home, read_runtime
from det_native.schema.private_files import write_private
from det_native.schema.processes import start_mark
from det_native.schema.sockets import dial, fits


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    found = Home(tmp_path / "home")
    home_folder.prepare(found)
    return found


class TestSettings:
    def test_the_command_line_comes_before_the_environment(self, tmp_path: Path) -> None:
        config = parse_arguments(["--home", str(tmp_path), "--warm", "torch", "--warm", "keras"], {"DET_SLOTS": "4"})
        assert (config.home.path, config.slots, config.warm) == (tmp_path, "4", ("torch", "keras"))
        assert parse_arguments(["--slots", "cpu:2"], {"DET_SLOTS": "4"}).slots == "cpu:2"
        assert (config.tcp, config.scheme) == (None, "http")
        assert parse_arguments(["--port", "7"], {}).tcp == "127.0.0.1"
        assert parse_arguments(["--host", "::1"], {}).tcp == "::1"

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "cluster.example"])
    def test_beyond_loopback_needs_tls(self, host: str, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="--tls-cert"):
            parse_arguments(["--host", host], {})
        for name in ("cert", "key"):
            (tmp_path / name).write_text("")
        files = ["--tls-cert", str(tmp_path / "cert"), "--tls-key", str(tmp_path / "key")]
        assert parse_arguments(["--host", host, *files], {}).scheme == "https"

    def test_half_of_tls_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "cert").write_text("")
        with pytest.raises(ArgumentError, match="belong together"):
            parse_arguments(["--tls-cert", str(tmp_path / "cert")], {})
        with pytest.raises(ArgumentError, match="cannot be read"):
            parse_arguments(["--tls-cert", str(tmp_path / "none"), "--tls-key", str(tmp_path / "cert")], {})


class TestHome:
    def test_the_token_is_made_once_and_private(self, home: Home) -> None:
        first = home_folder.token(home)
        assert len(first) == 43
        assert stat.S_IMODE(home.token.stat().st_mode) == 0o600
        assert home_folder.token(home) == first

    @pytest.mark.parametrize("left", ["", "short", "with spaces and more than forty-three characters"])
    def test_a_broken_token_is_replaced(self, home: Home, left: str) -> None:
        write_private(home.token, left)
        assert len(home_folder.token(home)) == 43

    def test_a_token_that_others_could_read_is_replaced(self, home: Home) -> None:
        first = home_folder.token(home)
        home.token.chmod(0o640)
        assert home_folder.token(home) != first
        assert stat.S_IMODE(home.token.stat().st_mode) == 0o600

    def test_a_token_that_earlier_versions_said_to_a_port_is_replaced(self, home: Home) -> None:
        first = home_folder.token(home)
        home_folder.renew_exposed_token(home)
        assert home_folder.token(home) == first
        home.exposing_port.write_text("8080")
        home_folder.renew_exposed_token(home)
        assert home_folder.token(home) != first
        assert not home.exposing_port.exists()

    def test_a_private_file_is_whole_or_not_there(self, home: Home) -> None:
        path = home.path / "file"
        write_private(path, "first")
        with pytest.raises(UnicodeEncodeError):
            write_private(path, "half \ud800")
        assert path.read_text() == "first"
        assert [entry.name for entry in home.path.iterdir()] == ["file"]

    def test_only_one_master_holds_a_home(self, home: Home) -> None:
        with home_folder.lock(home):
            script = (
                "import sys; from pathlib import Path; from det_native.master.home import lock;"
                "from det_native.schema.home import Home; lock(Home(Path(sys.argv[1])))"
            )
            other = subprocess.run(
                [sys.executable, "-c", script, str(home.path)], capture_output=True, text=True, check=False
            )
        assert "MasterStartError" in other.stderr
        assert "runs in" in other.stderr
        home_folder.lock(home).release()

    def test_the_runtime_file_comes_and_goes(self, home: Home) -> None:
        announced = announce(home, "http://127.0.0.1:5")
        assert read_runtime(home) == announced
        assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o600
        withdraw(home)
        withdraw(home)
        assert read_runtime(home) is None

    def test_the_runtime_file_of_another_master_stays(self, home: Home) -> None:
        other = announce(home, "http://127.0.0.1:5").model_dump() | {"pid": os.getppid(), "start": ""}
        other["start"] = start_mark(os.getppid())
        write_private(home.runtime, json.dumps(other))
        withdraw(home)
        assert home.runtime.exists()


@pytest.mark.slow
@pytest.mark.parametrize("made_anew", [False, True])
def test_a_master_whose_home_was_deleted_stops(home: Home, made_anew: bool) -> None:
    master = subprocess.Popen([sys.executable, "-P", "-m", "det_native.master", "--home", str(home.path)])
    try:
        deadline = time.monotonic() + 60
        while not home.runtime.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert read_runtime(home) is not None
        shutil.rmtree(home.path)
        if made_anew:
            home_folder.prepare(home)
            with home_folder.lock(home):
                assert master.wait(timeout=60) == 0
        else:
            assert master.wait(timeout=60) == 0
            assert not home.path.exists()
    finally:
        master.kill()
        master.wait()


@pytest.mark.slow
def test_a_runtime_file_that_was_removed_comes_back(home: Home) -> None:
    master = subprocess.Popen([sys.executable, "-P", "-m", "det_native.master", "--home", str(home.path)])
    try:
        deadline = time.monotonic() + 60
        while not home.runtime.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        announced = read_runtime(home)
        assert announced is not None
        home.runtime.unlink()
        while not home.runtime.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert read_runtime(home) == announced
        assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o600
    finally:
        master.terminate()
        assert master.wait(60) == 0
    assert not home.runtime.exists()


class TestSocket:
    def test_it_is_its_users_only_and_goes_with_the_master(self, home: Home) -> None:
        home.socket.write_text("what a killed master left")
        with local_socket(home) as listening:
            assert listening.getsockname() == str(home.socket)
            assert stat.S_IMODE(home.socket.stat().st_mode) == 0o600
            dial(home.socket, 5).close()
        assert not home.socket.exists()

    def test_the_socket_of_another_master_stays(self, home: Home) -> None:
        with local_socket(home):
            home.socket.unlink()
            with local_socket(home) as other:
                home.socket.rename(home.path / "kept")
                home.socket.symlink_to("kept")
                assert other.getsockname() == str(home.socket)
        assert home.socket.is_symlink()

    @pytest.mark.parametrize("name", ["long" * 30, "with space", "with:colon"])
    def test_a_home_whose_path_no_socket_can_have(self, tmp_path: Path, name: str) -> None:
        home = Home(tmp_path / name)
        home_folder.prepare(home)
        with local_socket(home) as listening:
            path = Path(listening.getsockname())
            assert fits(path)
            assert path.parent != home.path
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            dial(path, 5).close()
        assert not path.exists()

    def test_tcp_is_for_those_who_ask(self, home: Home) -> None:
        assert listen(MasterConfig(home), 0) is None

    def test_the_port_of_the_last_start_is_taken_again_if_it_is_free(self, home: Home) -> None:
        config = MasterConfig(home, host="127.0.0.1")
        with listening_at(config) as first:
            port = first.getsockname()[1]
            assert tcp_url(config, first) == f"http://127.0.0.1:{port}"
            remember_port(home, port)
            with listening_at(config) as second:
                assert second.getsockname()[1] != port
        with listening_at(config) as third:
            assert third.getsockname()[1] == port

    def test_a_port_that_was_asked_for_is_taken_or_refused(self, home: Home) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(MasterStartError, match=f"cannot listen on 127.0.0.1:{port}"):
                listen(MasterConfig(home, port=port), 0)


def listening_at(config: MasterConfig) -> socket.socket:
    """Listen by TCP as a master does."""
    made = listen(config, last_port(config.home))
    assert made is not None
    return made


class TestLog:
    @pytest.fixture(autouse=True)
    def _root_logger(self) -> Iterator[None]:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        yield
        for handler in root.handlers:
            if handler not in handlers:
                handler.close()
        root.handlers[:], root.level = handlers, level
        logging.captureWarnings(False)

    def test_it_is_private_and_rotates(self, home: Home) -> None:
        set_up_logging(home.log, background=False)
        logging.getLogger("det_native").info("x" * (6 << 20))
        logging.getLogger("det_native").info("after")
        assert stat.S_IMODE(home.log.stat().st_mode) == 0o600
        assert home.log.read_text().endswith("det_native: after\n")
        assert home.log.with_name("master.log.1").stat().st_size > 6 << 20

    def test_standard_streams_of_a_background_master_follow_it(self, home: Home) -> None:
        script = (
            "import sys, os, logging; from pathlib import Path; from det_native.master.logs import set_up_logging;"
            "set_up_logging(Path(sys.argv[1]), background=True);"
            "logging.info('x' * (6 << 20)); logging.info('after'); os.write(2, b'from the interpreter\\n')"
        )
        with home.log.open("ab") as log:
            subprocess.run([sys.executable, "-c", script, str(home.log)], stdout=log, stderr=log, check=True)
        assert home.log.read_text().splitlines()[-1] == "from the interpreter"
        assert os.path.exists(f"{home.log}.1")
