"""The HTTP session against a real server that answers as it is told."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from det_native import PROTOCOL, __version__
from det_native.client.addresses import is_loopback, normal_url
from det_native.client.connect import check_version
from det_native.client.session import Session
from det_native.errors import (
    ArgumentError,
    AuthenticationError,
    DetError,
    FencedError,
    MasterUnreachableError,
    NotFoundError,
    ProtocolMismatchError,
    RequestError,
    UnreadableAnswerError,
)
from det_native.schema import routes
from det_native.schema.datasets import Sizes
from det_native.schema.rest import ErrorBody, ExperimentChange, Health
from det_native.schema.sockets import url_of

TOKEN = "a-token-that-nobody-must-see"
# A question, and the shortest answer to it.
NO_SIZES, EMPTY = Sizes(sizes=[]), {"files": []}


@dataclass
class Server:
    """Answers with what is in `answers`, in turn (status, JSON or bytes), and remembers what was asked."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    missing: int = 0  # bytes that are promised and never come

    def answer(self, status: int, body: Any = None) -> None:
        """Have the next request answered so."""
        self.answers.append((status, body))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server at a socket of this user's, in a thread."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            state.connections.add(id(self.connection))
            length = self.headers.get("Content-Length")
            body = self.rfile.read(int(length)) if length else b""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            state.requests.append((self.command, self.path, dict(self.headers.items()), body))
            status, answer = state.answers.pop(0)
            if status == 0:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            content = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 307):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(content) + state.missing))
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = bool(state.missing)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - names that http.server calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Threads(ThreadingHTTPServer):
        address_family = socket.AF_UNIX
        server_bind = socketserver.TCPServer.server_bind  # HTTP's own wants a host and a port
        daemon_threads = False  # so that `server_close` waits for them

        def process_request(self, request: Any, client_address: Any) -> None:
            accepted.append(request)
            super().process_request(request, client_address)

    accepted: list[socket.socket] = []
    http = Threads(str(tmp_path / "s"), Handler)  # type: ignore[arg-type]
    state.url = url_of(tmp_path / "s")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    for one in accepted:
        with contextlib.suppress(OSError):  # it is closed already
            one.shutdown(socket.SHUT_RDWR)
    http.server_close()


@pytest.fixture
def session(server: Server) -> Iterator[Session]:
    """A session with the server."""
    made = Session(server.url, TOKEN)
    yield made
    made.close()


def test_a_request_carries_the_token_and_protocol_and_gives_json(server: Server, session: Session) -> None:
    server.answer(200, [{"batch": 5, "metrics": {"loss": "NaN"}}])
    [row] = session.call(routes.GET_METRICS, trial_id=3, limit=5, after_batch=None)
    assert (row.batch, row.metrics) == (5, {"loss": "NaN"})
    method, path, headers, _ = server.requests[0]
    assert (method, path) == ("GET", "/api/v1/trials/3/metrics?limit=5")
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["X-Det-Protocol"] == str(PROTOCOL)


def test_the_token_is_not_in_any_representation(session: Session) -> None:
    assert TOKEN not in repr(session)
    assert TOKEN not in str(vars(session))
    assert session.url in repr(session)


def test_a_netrc_does_not_replace_the_token(
    server: Server, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("default login other password other\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    server.answer(200, EMPTY)
    session.call(routes.FIND_DATA, NO_SIZES)
    assert server.requests[0][2]["Authorization"] == f"Bearer {TOKEN}"


def test_a_proxy_is_not_asked_for_this_machine(
    server: Server, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server.answer(200, EMPTY)
    assert session.call(routes.FIND_DATA, NO_SIZES).files == []


def test_connections_are_kept(server: Server, session: Session) -> None:
    for _ in range(3):
        server.answer(200, EMPTY)
        session.call(routes.FIND_DATA, NO_SIZES)
    assert len(server.connections) == 1


def test_bodies_are_json_bytes_or_produced_while_sent(server: Server, session: Session) -> None:
    answers = (EMPTY, {"hashes": []}, {"hashes": []}, EMPTY)
    for answer in answers:
        server.answer(200, answer)
    session.call(routes.FIND_DATA, Sizes(sizes=[1, 2]))
    session.call(routes.PUT_BLOBS, b"raw", headers={"Content-Type": "application/x"})
    session.call(routes.PUT_BLOBS, iter([b"one", b"two"]))
    session.call(routes.FIND_DATA, b'{"sizes":[]}')
    assert json.loads(server.requests[0][3]) == {"sizes": [1, 2]}
    assert [request[3] for request in server.requests[1:]] == [b"raw", b"onetwo", b'{"sizes":[]}']
    kinds = [request[2].get("Content-Type") for request in server.requests]
    assert kinds == ["application/json", "application/x", None, "application/json"]


def test_fields_that_were_not_set_are_not_sent(server: Server, session: Session) -> None:
    server.answer(204)
    assert session.call(routes.DELETE_MODEL, name="a/b c", versions=True) is None
    assert server.requests[0][:2] == ("DELETE", "/api/v1/models/a%2Fb%20c?versions=true")
    server.answer(409, {"error": "no"})
    with pytest.raises(RequestError):
        session.call(routes.CHANGE_EXPERIMENT, ExperimentChange(description="x", project=None), experiment_id=3)
    assert json.loads(server.requests[1][3]) == {"description": "x", "project": None}


@pytest.mark.parametrize("failure", [0, 503])
def test_what_is_safe_to_repeat_is_repeated(server: Server, session: Session, failure: int) -> None:
    for send in (
        lambda: session.call(routes.LIST_DATA),
        lambda: session.call(routes.REMOVE_DATA, name="x"),
        lambda: session.call(routes.CREATE_SCHEDULE, b"{}", key="k"),
        lambda: session.call(routes.FIND_DATA, NO_SIZES),
    ):
        server.answer(failure)
        server.answer(400, {"error": "It was repeated."})
        with pytest.raises(RequestError, match="It was repeated"):
            send()
    assert len(server.requests) == 8
    assert server.requests[5][2]["Idempotency-Key"] == "k"


def test_what_may_have_had_an_effect_is_not_repeated(server: Server, session: Session) -> None:
    server.answer(0)
    with pytest.raises(MasterUnreachableError):
        session.call(routes.CREATE_EXPERIMENT, b"{}")
    server.answer(503, {"error": "busy"})
    with pytest.raises(RequestError, match="busy"):
        session.call(routes.CREATE_EXPERIMENT, b"{}")
    server.answer(0)
    with pytest.raises(MasterUnreachableError):
        session.call(routes.PUT_BLOBS, iter([b"x"]), key="k")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "route", "parameters", "expected"),
    [
        (401, routes.GET_MASTER, {}, AuthenticationError),
        (404, routes.GET_TRIAL, {"trial_id": 9}, NotFoundError),
        (409, routes.LIST_DATA, {}, RequestError),
        (409, routes.GET_BEST, {"run_id": "abc"}, FencedError),
        (422, routes.LIST_EXPERIMENTS, {}, RequestError),
        (426, routes.GET_MASTER, {}, ProtocolMismatchError),
        (307, routes.GET_MASTER, {}, RequestError),
    ],
)
def test_refusals_become_errors_of_ours(
    server: Server,
    session: Session,
    status: int,
    route: routes.Route[None, Any],
    parameters: dict[str, Any],
    expected: type[Exception],
) -> None:
    server.answer(status, {"error": "There is no trial 9.", "missing": ["0" * 64]})
    with pytest.raises(expected) as caught:
        session.call(route, **parameters)
    assert type(caught.value) is expected
    assert TOKEN not in str(caught.value)
    if isinstance(caught.value, RequestError) and status != 307:
        assert caught.value.status == status
        assert str(caught.value).startswith("There is no trial 9.")
        # A name that the master does not know may be another master's: say which this is, and how to see what it has.
        assert (session.url in str(caught.value)) == ("experiment list" in str(caught.value)) == (status == 404)
        assert caught.value.body == ErrorBody(error="There is no trial 9.", missing=["0" * 64])


def test_what_a_master_does_not_know_is_named(server: Server, session: Session) -> None:
    problem = {"where": "body.wider", "what": "Extra inputs are not permitted", "remedy": ""}
    server.answer(422, {"error": "The request is not valid.", "problems": [problem]})
    with pytest.raises(RequestError) as caught:
        session.call(routes.CREATE_BUNDLE, b"{}")
    assert str(caught.value) == (
        "The request is not valid. body.wider: Extra inputs are not permitted. A master of another version may know "
        "less, or more: `det version` shows both."
    )


def test_a_question_at_the_end_of_a_refusal_is_left_alone(server: Server, session: Session) -> None:
    text = "It is not valid:\n  - a: is 'tpee'. Did you mean tpe?"
    server.answer(
        422, {"error": text, "problems": [{"where": "a", "what": "is 'tpee'.", "remedy": "Did you mean tpe?"}]}
    )
    with pytest.raises(RequestError) as caught:
        session.call(routes.CREATE_EXPERIMENT, b"{}")
    assert str(caught.value) == text


def test_a_refusal_that_is_not_a_masters_is_told_by_its_status(server: Server, session: Session) -> None:
    server.answer(500, b"<html>oops</html>")
    with pytest.raises(RequestError, match="HTTP 500") as caught:
        session.call(routes.GET_MASTER)
    assert caught.value.body is None


def test_an_answer_of_another_version_is_one_sentence(server: Server, session: Session) -> None:
    server.answers += [(200, {"id": 7, "of a later version": True}), (200, b"<html>a proxy</html>")]
    for _ in range(2):
        with pytest.raises(UnreadableAnswerError, match=r"did what POST .*kill asks.*cannot read its answer"):
            session.call(routes.KILL_EXPERIMENT, experiment_id=7)


def test_nobody_there_says_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        session = Session(f"http://127.0.0.1:{unused.getsockname()[1]}", TOKEN, attempts=2)
        with pytest.raises(MasterUnreachableError, match=r"refused.*det up"):
            session.call(routes.GET_MASTER)


def test_no_socket_there_says_what_to_do(tmp_path: Path) -> None:
    session = Session(url_of(tmp_path / "none"), TOKEN, attempts=2)
    with pytest.raises(MasterUnreachableError, match=r"No such file.*det up"):
        session.call(routes.GET_MASTER)


def test_a_stream_is_read_as_it_comes_and_a_break_is_told(server: Server, session: Session) -> None:
    server.answer(200, b"data: 1\n\ndata: 2\n\n")
    with session.stream(routes.STREAM_EVENTS, experiment_id=1, headers={"Last-Event-ID": "4"}) as response:
        assert [line for line in response.iter_lines() if line] == [b"data: 1", b"data: 2"]
    assert server.requests[0][2]["Last-Event-ID"] == "4"
    server.answer(404, {"error": "no such experiment"})
    with (
        pytest.raises(NotFoundError, match="no such experiment"),
        session.stream(routes.STREAM_EVENTS, experiment_id=2),
    ):
        pass


class Away:
    """A way that is mended by itself, as one behind SSH is."""

    name, patience = "ssh://box", 1.0

    def __init__(self, url: str) -> None:
        self.url = url
        self.reasons: list[str] = []

    def address(self) -> tuple[str, str]:
        """Return the address and the token."""
        return self.url, TOKEN

    def doubt(self) -> None:
        """Take note of nothing."""

    def cut(self, reason: str) -> DetError:
        """Keep the reason."""
        self.reasons.append(reason)
        return MasterUnreachableError("Out of touch with ssh://box since 14:03:00.")


def test_a_stream_that_breaks_on_a_way_that_is_mended_says_since_when(server: Server) -> None:
    server.answer(200, b"data: 1\n\n")
    server.missing = 7
    route = Away(server.url)
    with (
        contextlib.closing(Session(server.url, TOKEN, route=route)) as session,
        pytest.raises(MasterUnreachableError, match="Out of touch with ssh://box since 14:03:00"),
        session.stream(routes.STREAM_EVENTS) as response,
    ):
        list(response.iter_lines())
    assert route.reasons


def test_a_stream_that_breaks_off_is_said_in_plain_words(tmp_path: Path) -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab\n\r\n")

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        with (
            contextlib.closing(Session(url_of(tmp_path / "s"), TOKEN)) as session,
            pytest.raises(MasterUnreachableError, match=r"\(the answer broke off\)"),
            session.stream(routes.STREAM_EVENTS) as response,
        ):
            list(response.iter_lines())
        thread.join()


def test_something_else_at_the_address_is_no_master(server: Server, session: Session) -> None:
    server.answer(200, {"hello": "world"})
    with pytest.raises(MasterUnreachableError, match="no det_native master"):
        session.health()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("unix:/home/me/master.sock", "unix:/home/me/master.sock"),
        ("localhost:80/", "http://localhost:80"),
        ("http://[::1]:80", "http://[::1]:80"),
        ("cluster.example:443", "https://cluster.example:443"),
        (" https://cluster.example/det/ ", "https://cluster.example/det"),
    ],
)
def test_addresses_are_completed(given: str, expected: str) -> None:
    assert normal_url(given) == expected


@pytest.mark.parametrize(
    "given", ["http://cluster.example:80", "ftp://127.0.0.1", "https://", "https://me:pw@host", "host:x", "unix:here"]
)
def test_unsafe_or_malformed_addresses_are_refused(given: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        normal_url(given)
    assert "pw" not in str(caught.value)
    assert given in str(caught.value) or "@" in given or "in the clear" in str(caught.value)


def test_a_name_that_only_looks_like_this_machine_is_not_it() -> None:
    assert not is_loopback("http://127.0.0.1.example")
    assert not is_loopback("http://localhost.example")
    assert is_loopback("http://127.9.9.9:1")


class TestVersions:
    def test_another_protocol_says_which_side_to_renew(self) -> None:
        older = Health(version="0.0.9", protocol=PROTOCOL - 1)
        with pytest.raises(ProtocolMismatchError, match="`det down` and `det up`"):
            check_version(older, "http://127.0.0.1:1")
        with pytest.raises(ProtocolMismatchError, match="upgraded"):
            check_version(older, "https://cluster.example")
        with pytest.raises(ProtocolMismatchError, match=r"pip install det-native==9\.0\.0"):
            check_version(Health(version="9.0.0", protocol=PROTOCOL + 1), "https://cluster.example")

    def test_an_older_master_of_the_same_protocol_is_one_warning(self, recwarn: pytest.WarningsRecorder) -> None:
        check_version(Health(version="0.0.1", protocol=PROTOCOL), "http://127.0.0.1:1")
        assert len(recwarn) == 1
        assert "older" in str(recwarn[0].message)
        check_version(Health(version=__version__, protocol=PROTOCOL), "http://127.0.0.1:1")
        check_version(Health(version="99.0.0", protocol=PROTOCOL), "http://127.0.0.1:1")
        assert len(recwarn) == 1
