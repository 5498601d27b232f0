"""Replies of a master that are lost on the way to a command: what was asked for is done, and done once."""

from __future__ import annotations

import contextlib
import shutil
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master

from det_native.client.command import cli
from det_native.schema.sockets import url_of

pytestmark = pytest.mark.slow

MODEL_DEF = """
from det_native.pytorch import PyTorchTrial

class Trial(PyTorchTrial):
    def __init__(self, context):
        self.context = context

    def build_training_data_loader(self): ...
    def build_validation_data_loader(self): ...
    def train_batch(self, batch, epoch_idx, batch_idx): ...
    def evaluate_batch(self, batch): ...
"""
CONFIG = """
entrypoint: model_def:Trial
hyperparameters: {global_batch_size: 8}
searcher: {name: single, metric: loss, max_length: {batches: 4}}
"""


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a master; the reply to the one numbered `lost`, of those that are no GET, never arrives."""

    address_family = socket.AF_UNIX

    def __init__(self, master: Master, place: Path) -> None:
        self.master = master
        self.lost = -1
        self.passed: list[str] = []
        self.accepted: list[socket.socket] = []
        super().__init__(str(place), Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Take the place, which has neither host nor port."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", 0

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, which is closed at the end."""
        self.accepted.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients whose reply is lost close their connections."""


class Handler(BaseHTTPRequestHandler):
    """Passes one connection's requests on."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def _pass_on(self) -> None:
        body = self._body()
        kept = {name: value for name, value in self.headers.items() if name not in ("Host", "Transfer-Encoding")}
        answer = self.server.master.client.request(self.command, self.path, headers=kept, content=body)
        if self.command != "GET":
            self.server.passed.append(f"{self.command} {self.path}")
            if len(self.server.passed) - 1 == self.server.lost:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def _body(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    do_GET = do_POST = do_DELETE = do_PATCH = _pass_on  # noqa: N815 - names that http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def proxy(master: Master, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Proxy]:
    """Give a proxy before a master, to which commands speak."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the path of a socket is short
    served = Proxy(master, folder / "proxy.sock")
    served.daemon_threads = False
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("DET_MASTER", url_of(folder / "proxy.sock"))
    monkeypatch.setenv("DET_TOKEN", master.token)
    monkeypatch.setenv("DET_HOME", str(tmp_path / "client"))
    monkeypatch.chdir(tmp_path)
    yield served
    served.shutdown()
    thread.join()
    for connection in served.accepted:
        with contextlib.suppress(OSError):  # it is closed already
            connection.shutdown(socket.SHUT_RDWR)
    served.server_close()
    shutil.rmtree(folder)


def det(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_each_reply_of_a_create_may_be_lost(proxy: Proxy, tmp_path: Path) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "const.yaml").write_text(CONFIG)

    def create(number: int) -> list[str]:
        (folder / "model_def.py").write_text(f"{MODEL_DEF}# {number}\n")
        proxy.passed.clear()
        det("experiment", "create", "mnist/const.yaml", "mnist")
        return list(proxy.passed)

    asked = create(0)
    assert {path.rpartition("/")[2] for path in asked} >= {"environment", "missing", "blobs", "bundles", "check"}
    assert asked[-1] == "POST /api/v1/experiments"
    for lost in range(len(asked)):
        proxy.lost = lost
        passed = create(lost + 1)
        assert len(passed) > len(asked), f"the reply to {asked[lost]} was lost"
        assert len(proxy.master.get("/experiments")) == lost + 2, "it is made once"


def test_who_stops_a_master_is_told_of_the_trials_that_wait(proxy: Proxy) -> None:
    for _ in range(3):
        proxy.master.create()
    proxy.master.world.wait_for_jobs(2)
    told = det("down")
    assert told.endswith("stops. 2 running trials go on. 1 trial waits until a master runs again: `det up`.\n")


@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "kill"])
def test_a_lost_reply_to_a_command_is_asked_for_again(proxy: Proxy, verb: str) -> None:
    number = proxy.master.create()["id"]
    proxy.lost = 0
    det("experiment", verb, str(number))
    assert proxy.passed == [f"POST /api/v1/experiments/{number}/{verb}"] * 2
