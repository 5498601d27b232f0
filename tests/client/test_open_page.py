"""``det open``: an experiment in the JupyterLab that runs, or on the master's own page by a link that signs in."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
from click.testing import CliRunner, Result
from master_parts import Master
from put_experiments import put_experiment

from det_native.client import command, page_link
from det_native.client.command import cli
from det_native.client.connect import connect
from det_native.errors import NotFoundError, ProtocolMismatchError
from det_native.schema import routes
from det_native.schema.home import Home
from det_native.schema.page import PageAsk, PageCode


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["open", *words], catch_exceptions=False)


@pytest.mark.slow
def test_the_address_is_that_of_the_server_which_runs(runtime: Path, named_master: Master) -> None:
    number = put_experiment(named_master)
    server = {"url": "http://localhost:8899/base/", "token": "a b", "pid": os.getpid(), "root_dir": "/"}
    (runtime / "jpserver-1.json").write_text(json.dumps(server))
    printed = run(str(number), "--print")
    assert (printed.exit_code, printed.output) == (
        0,
        f"http://localhost:8899/base/lab?det-experiment={number}&token=a%20b\n",
    )
    assert run("--print").output == "http://localhost:8899/base/lab?token=a%20b\n"


class Answering:
    """A session that gives codes."""

    route = None

    def __init__(self, url: str = "unix:/home/master.sock", refusal: Exception | None = None) -> None:
        self.url = url
        self._refusal = refusal

    def call(self, route: routes.Route[Any, Any], body: PageAsk) -> PageCode:
        assert (route, body) == (routes.OPEN_PAGE, PageAsk())
        if self._refusal is not None:
            raise self._refusal
        return PageCode(code="a-code_1", url="http://127.0.0.1:4321", seconds=120.0)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("unix:/home/master.sock", "http://127.0.0.1:4321"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://gpu.example:8443", "https://gpu.example:8443"),
    ],
)
def test_the_link_is_where_the_browser_reaches_the_master(url: str, origin: str) -> None:
    link = page_link.page_link(Answering(url), "/experiments/7")  # type: ignore[arg-type]
    assert link == f"{origin}/#signin=a-code_1&to=/experiments/7"


def test_an_older_master_has_no_page_and_it_says_so() -> None:
    with pytest.raises(ProtocolMismatchError, match="is older and serves no page: `det down` and `det up` renew it"):
        page_link.page_link(Answering(refusal=NotFoundError("Not Found")), "/experiments")  # type: ignore[arg-type]


def test_without_jupyterlab_the_masters_page_opens_by_a_file_that_nobody_else_can_read(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[str] = []
    monkeypatch.setattr(click, "launch", lambda address: launched.append(address) or 0)
    monkeypatch.setattr("det_native.client.connect.connect", lambda *_, **__: Answering())
    link = "http://127.0.0.1:4321/#signin=a-code_1&to=/experiments"
    assert run().output == f"{link}\n"
    [address] = launched
    assert "a-code_1" not in address, "all users see the arguments of a program"
    path = Path(address.removeprefix("file://"))
    assert path.parent.parent == Home.default().path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert link.replace("&", "&amp;") in path.read_text()
    os.utime(path, (0, 0))
    run()
    assert not path.exists()
    launched.clear()
    assert run("--page", "--print").output == f"{link}\n"
    assert not launched


def test_with_jupyterlab_the_page_is_asked_for(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.client.connect.connect", lambda *_, **__: Answering())
    server = {"url": "http://localhost:8899/", "token": "t", "pid": os.getpid(), "root_dir": "/"}
    (runtime / "jpserver-1.json").write_text(json.dumps(server))
    assert run("--print").output == "http://localhost:8899/lab?token=t\n"
    assert run("--page", "--print").output.startswith("http://127.0.0.1:4321/#signin=")


def test_without_a_master_it_says_how_to_start_one(runtime: Path) -> None:
    printed = run()
    assert printed.exit_code == 1
    assert "`jupyter lab` starts one" in printed.stderr
    assert "Start one with `det up`" in printed.stderr


@pytest.mark.parametrize("below", ["", "home"])
@pytest.mark.parametrize("words", [("up",), ("status",), ("down",), ("open",), ("open", "--page")])
def test_a_home_that_is_a_file_is_named_in_a_sentence(
    runtime: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    below: str,
) -> None:
    file = runtime / "file"
    file.write_text("")
    monkeypatch.setenv("DET_HOME", str(file / below))
    monkeypatch.setattr("sys.argv", ["det", *words])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert f"{file / below} is no folder" in said
    assert "Set DET_HOME to a folder of yours." in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_the_next_master_has_the_page_at_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path))
    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    ports = []
    for _ in range(2):
        ports.append(urlsplit(page_link.page_link(connect(None, start=True), "/experiments")).port)
        assert CliRunner().invoke(cli, ["down"], catch_exceptions=False).exit_code == 0
    assert ports[0] == ports[1]
