"""Connections without a token at a real master process that may open few files."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from det_native.client.session import Session
from det_native.master import home as home_folder
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.sockets import dial, url_of

pytestmark = pytest.mark.slow

PATIENCE = 60.0
# As tight as a system may be, and limits short enough for a test.
START = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from det_native.master import connections
from det_native.master.api import gate
connections.SECONDS_WITHOUT_TOKEN = gate.BODY_SILENCE_SECONDS = 1.0
connections.UnknownConnections.__init__.__defaults__ = (256, 1.0)
from det_native.master.__main__ import main
sys.exit(main(["--home", sys.argv[1]]))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a running master with a thousand descriptors."""
    found = Home(tmp_path_factory.mktemp("connections") / "home")
    home_folder.prepare(found)
    environment = os.environ | {"DET_SLOTS": "cpu:1"}
    master = subprocess.Popen([sys.executable, "-c", START, str(found.path)], env=environment)
    try:
        deadline = time.monotonic() + PATIENCE
        while read_runtime(found) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield found
    finally:
        master.send_signal(signal.SIGTERM)
        master.wait(PATIENCE)


def connected(home: Home) -> socket.socket:
    """Connect to a master."""
    return dial(home.socket, PATIENCE)


def ask(home: Home) -> str:
    """Send an honest request; return whose home the master has."""
    session = Session(url_of(home.socket), home.token.read_text().strip())
    try:
        return session.call(routes.GET_MASTER).home
    finally:
        session.close()


def is_open(stream: socket.socket) -> bool:
    """Whether the other side has not closed a connection, whatever it has sent."""
    stream.setblocking(False)
    try:
        while stream.recv(4096):
            pass
    except BlockingIOError:
        return True
    return False


def test_a_thousand_connections_without_a_token_block_nobody(home: Home) -> None:
    many = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * many)), hard))
    opened = []
    try:
        for _ in range(many):
            opened.append(connected(home))
            opened[-1].sendall(b"GET /api/v1/master HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert ask(home) == str(home.path)
        runtime = read_runtime(home)
        assert runtime is not None
        assert psutil.Process(runtime.pid).num_fds() < many
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "connections were closed that showed no token" in home.log.read_text()


def test_headers_that_do_not_end_are_not_waited_for(home: Home) -> None:
    with connected(home) as slow:
        slow.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert slow.recv(1) == b""


def test_a_body_that_does_not_come_is_given_up(home: Home) -> None:
    token = home.token.read_text().strip()
    head = (
        "POST /api/v1/blobs/missing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: 100\r\nAuthorization: Bearer {token}\r\n\r\n{{"
    )
    with connected(home) as slow:
        slow.sendall(head.encode())
        answer = ""
        while "came for" not in answer:  # head and body may come in pieces
            piece = slow.recv(4096).decode()
            assert piece, answer
            answer += piece
    assert "408" in answer.splitlines()[0]
    assert "Nothing more of the body came for" in answer


def test_a_connection_with_a_token_stays(home: Home) -> None:
    token = home.token.read_text().strip()
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    with (
        connected(home) as stream,
        connected(home) as later,
    ):
        stream.sendall(request.encode())
        assert b"200" in stream.recv(4096)
        assert later.recv(1) == b""  # opened after it, and closed for want of a token
        assert is_open(stream)
