"""A network that loses, repeats and delays whole requests: a proxy before a master that knows HTTP."""

from __future__ import annotations

import contextlib
import enum
import http.client
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_OF_THE_LINE = ("Host", "Transfer-Encoding", "Connection", "Content-Length")


class Fault(enum.Enum):
    """What becomes of a request that is no GET."""

    NONE = enum.auto()
    LOST = enum.auto()  # it is done, and the reply never arrives
    TWICE = enum.auto()  # it is done twice, and the second reply arrives
    LATE = enum.auto()  # the connection breaks off; it is done nevertheless, after the next requests


@dataclass
class Request:
    """One request as it came."""

    name: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Late:
    """A request that is on its way while others overtake it."""

    request: Request
    others: int


@dataclass
class _State:
    late: list[Late] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class HttpProxy(ThreadingHTTPServer):
    """Passes requests on to a master, with the faults that a test wants.

    Parameters
    ----------
    target : Path or int
        The master's socket, or its port on loopback.
    place : Path
        Where this one listens.

    Attributes
    ----------
    fault : callable
        Returns, for a number from 0 and ``"POST /path"``, what becomes of a request that is no GET.
    passed : list of str
        Those requests so far.
    faults : list of Fault
        What became of them.
    overtaken : list of int
        The status of the answers to late requests, which nobody hears.
    """

    address_family = socket.AF_UNIX
    daemon_threads = False

    def __init__(self, target: Path | int, place: Path) -> None:
        self.target = target
        self.fault: Callable[[int, str], Fault] = lambda number, name: Fault.NONE
        self.passed: list[str] = []
        self.faults: list[Fault] = []
        self.overtaken: list[int] = []
        self._state = _State()
        self._connections: list[socket.socket] = []
        super().__init__(str(place), Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Take the place, which has neither host nor port."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", 0

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, which is closed at the end."""
        self._connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients whose reply is lost close their connections."""

    def server_close(self) -> None:
        """Close it and all connections, and wait for their threads."""
        for connection in self._connections:  # to both sides
            with contextlib.suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def drawn(self, name: str) -> Fault:
        """Note a request that is no GET, and say what becomes of it."""
        with self._state.lock:
            fault = self.fault(len(self.passed), name)
            self.passed.append(name)
            self.faults.append(fault)
            return fault

    def delay(self, request: Request, others: int = 2) -> None:
        """Keep a request until so many others have overtaken it."""
        with self._state.lock:
            self._state.late.append(Late(request, others))

    def deliver_late(self) -> None:
        """Do what has been overtaken often enough, now that another one was done."""
        with self._state.lock:
            for late in self._state.late:
                late.others -= 1
            due = [late for late in self._state.late if late.others <= 0]
            self._state.late = [late for late in self._state.late if late.others > 0]
        for late in due:
            with self.answer(late.request) as answer:
                answer.read()
                self.overtaken.append(answer.status)

    @contextmanager
    def answer(self, request: Request) -> Iterator[http.client.HTTPResponse]:
        """Ask the master."""
        with contextlib.closing(http.client.HTTPConnection("localhost")) as line:
            line.sock = self._connected()
            line.request(request.name.partition(" ")[0], request.path, request.body, request.headers)
            yield line.getresponse()

    def _connected(self) -> socket.socket:
        family, address = (socket.AF_UNIX, str(self.target))
        if isinstance(self.target, int):
            family, address = socket.AF_INET, ("127.0.0.1", self.target)  # type: ignore[assignment]
        made = socket.socket(family, socket.SOCK_STREAM)
        made.connect(address)
        self._connections.append(made)
        return made


class Handler(BaseHTTPRequestHandler):
    """Passes one connection's requests on."""

    protocol_version = "HTTP/1.1"
    server: HttpProxy

    def _pass_on(self) -> None:
        kept = {name: value for name, value in self.headers.items() if name not in _OF_THE_LINE}
        request = Request(f"{self.command} {self.path}", self.path, kept, self._body())
        fault = Fault.NONE if self.command == "GET" else self.server.drawn(request.name)
        if fault is Fault.LATE:
            self.server.delay(request)
            return self._break_off()
        if fault is Fault.TWICE:
            with self.server.answer(request) as first:
                first.read()
        with self.server.answer(request) as answer:
            if fault is Fault.LOST:
                answer.read()
                return self._break_off()
            if self.command != "GET":
                self.server.deliver_late()
            self._reply(answer)

    def _break_off(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _reply(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name in ("Content-Type", "Content-Length", "Retry-After", "Content-Encoding"):
            if (value := answer.getheader(name)) is not None:
                self.send_header(name, value)
        if answer.getheader("Content-Length") is None:
            self.send_header("Connection", "close")  # a stream
        self.end_headers()
        while piece := answer.read1(1 << 16):
            self.wfile.write(piece)
            self.wfile.flush()

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


@contextmanager
def http_proxy(target: Path | int, place: Path) -> Iterator[HttpProxy]:
    """Run one for the block."""
    proxy = HttpProxy(target, place)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
