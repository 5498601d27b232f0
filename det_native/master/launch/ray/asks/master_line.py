"""HTTP to the master for requests that come from workers of other machines: over its socket, or TLS."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from det_native.errors import ArgumentError
from det_native.master.launch.ray.asks.kinds import Request, Response
from det_native.schema.bodies import API
from det_native.schema.rest import ErrorBody
from det_native.schema.sockets import dial, is_socket, path_of

logger = logging.getLogger(__name__)

_SECONDS = 60.0
_REQUEST_HEADERS = frozenset({"accept", "authorization", "content-type", "user-agent", "x-det-protocol"})
_RESPONSE_HEADERS = frozenset({"content-type", "retry-after"})
_UNAVAILABLE = 503
_BAD_REQUEST = 400


class _Connection(http.client.HTTPConnection):
    """A connection that is made by a function."""

    def __init__(self, opener: Callable[[], socket.socket]) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._opener = opener

    def connect(self) -> None:
        """Connect."""
        self.sock = self._opener()


class MasterLine:
    """Sends requests to one master; threads may share it. Connections are kept for the next request.

    Parameters
    ----------
    url : str
        ``unix:/path`` of the master's socket, or ``https://host:port``. Requests have tokens of runs, which are told to
        nobody at plain TCP.

    Raises
    ------
    ArgumentError
        If it is another kind of address.
    """

    def __init__(self, url: str) -> None:
        if not is_socket(url) and not url.startswith("https://"):
            raise ArgumentError(f"Requests of workers go to a master's socket or to https://, not to {url!r}.")
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def send(self, request: Request) -> Response:
        """Return the master's answer; 503 where it does not answer, 400 where the path is none of its interface."""
        if not request.path.startswith(f"{API}/"):
            return refusal(_BAD_REQUEST, f"{request.path!r} is no address of the master's interface, {API}/...")
        headers = {name: value for name, value in request.headers.items() if name.lower() in _REQUEST_HEADERS}
        try:
            return self._send_kept(request, headers)
        except (OSError, http.client.HTTPException) as error:
            logger.info("The master at %s does not answer: %s", self._url, error)
            return refusal(_UNAVAILABLE, f"The master does not answer ({error or type(error).__name__}); try again.")

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _send_kept(self, request: Request, headers: dict[str, str]) -> Response:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                return self._exchange(kept, request, headers)
            except (OSError, http.client.HTTPException):  # the master had closed it
                kept.close()
        return self._exchange(self._new_connection(), request, headers)

    def _exchange(self, connection: http.client.HTTPConnection, request: Request, headers: dict[str, str]) -> Response:
        try:
            response = _exchanged(connection, request, headers)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return response

    def _new_connection(self) -> http.client.HTTPConnection:
        if is_socket(self._url):
            return _Connection(lambda: dial(path_of(self._url), _SECONDS))
        parts = urlsplit(self._url)
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_SECONDS)


def refusal(status: int, sentence: str) -> Response:
    """Return an answer with this status, as the master gives them."""
    body = ErrorBody(error=sentence).model_dump_json().encode()
    return Response(status, {"content-type": "application/json"}, body)


def _exchanged(connection: http.client.HTTPConnection, request: Request, headers: dict[str, str]) -> Response:
    connection.request(request.method, request.path, body=request.body or None, headers=headers)
    response = connection.getresponse()
    body = response.read()
    named = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, {name: named[name] for name in _RESPONSE_HEADERS if name in named}, body)
