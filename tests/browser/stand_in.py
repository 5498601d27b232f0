"""What stands where a master should be: a real server that is a newer or older master, no master, or a way to one."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from det_native import PROTOCOL
from det_native.schema.sockets import dial, path_of, url_of


class StandIn:
    """An address that answers in the way that `mode` says, from one request to the next.

    Attributes
    ----------
    mode : {"master", "newer", "older", "page"}
        Pass requests on to a real master; be a master of another protocol; be a web page.
    """

    def __init__(self, master_url: str, socket: Path) -> None:
        self.mode = "master"
        self.master = path_of(master_url)
        self.url = url_of(socket)

    @contextmanager
    def serving(self) -> Iterator[StandIn]:
        """Listen."""
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stand_in.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        class AtSocket(http.server.ThreadingHTTPServer):
            address_family = socket.AF_UNIX
            server_bind = socketserver.TCPServer.server_bind  # HTTP's own wants a host and a port

        with AtSocket(str(path_of(self.url)), Handler) as server:  # type: ignore[arg-type]
            thread = threading.Thread(target=server.serve_forever, name="stand-in")
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        if self.mode == "master":
            self._pass_on(request)
        elif self.mode == "page":
            self._send(request, HTTPStatus.OK, b"<html>Welcome to somewhere else</html>")
        else:
            protocol = PROTOCOL + (1 if self.mode == "newer" else -1)
            health = {"status": "ok", "version": "9.9.9", "protocol": protocol}
            self._send(request, HTTPStatus.OK, json.dumps(health).encode())

    def _pass_on(self, request: http.server.BaseHTTPRequestHandler) -> None:
        connection = http.client.HTTPConnection("localhost", timeout=10)
        connection.sock = dial(self.master, 10)
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        connection.request("GET", request.path, headers=headers)
        found = connection.getresponse()
        self._send(request, found.status, found.read())
        connection.close()

    @staticmethod
    def _send(request: http.server.BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Content-Type", "application/json")
        request.end_headers()
        request.wfile.write(body)
