"""How ``requests`` gets to a master: over a Unix socket of this user's, or over TCP to one that proves itself."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from det_native.client.addresses import proves_itself
from det_native.schema.introduction import address_text, conversation
from det_native.schema.sockets import dial, is_socket, path_of

_CONNECTIONS = 16
_PIECE = 4096
_HTTP_PORT = 80
_LOOPBACK = ("127.0.0.1", "::1")
_numbers = itertools.count(1)

# Makes a connection within so many seconds.
Opener = Callable[[float | None], socket.socket]


class Lines:
    """The ways of one ``requests`` session to masters."""

    def __init__(self, http: requests.Session) -> None:
        self._http = http
        self._bases: dict[tuple[str, str], str] = {}
        plain = _Adapter()
        for scheme in ("http://", "https://"):
            http.mount(scheme, plain)

    def base(self, url: str, token: str = "") -> str:
        """Return what a URL for ``requests`` begins with that leads to a master.

        Parameters
        ----------
        url : str
            The master's address.
        token : str
            What both sides prove to each other that they know, where `proves_itself` holds; without it they do not.
        """
        if is_socket(url):
            return self._mounted((url, ""), partial(dial, path_of(url)))
        if token and proves_itself(url):
            return self._mounted((url, token), partial(introduced, url, token))
        return url

    def _mounted(self, key: tuple[str, str], opener: Opener) -> str:
        known = self._bases.get(key)
        if known is None:
            known = f"http://line{next(_numbers)}.localhost"
            self._http.mount(f"{known}/", _Adapter(opener))
            self._bases[key] = known
        return known


def introduced(url: str, token: str, seconds: float | None) -> socket.socket:
    """Connect over TCP to a master that knows the token, which it is not told.

    Raises
    ------
    NotOursError
        If something else listens there.
    OSError
        If nothing does, or not in time.
    """
    parts = urlsplit(url)
    made = _connected(parts.hostname or "", parts.port or _HTTP_PORT, seconds)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talk = conversation(token, address_text(made.getpeername()))
        said = next(talk)
        while True:
            if said:
                made.sendall(said)
            said = talk.send(made.recv(_PIECE))
    except StopIteration:
        return made
    except BaseException:
        made.close()
        raise


def _connected(host: str, port: int, seconds: float | None) -> socket.socket:
    if not (host == "localhost" or host.endswith(".localhost")):
        return socket.create_connection((host, port), seconds)
    # In this order wherever we are: which of them is meant, the master has to know.
    for place in _LOOPBACK[:-1]:
        try:
            return socket.create_connection((place, port), seconds)
        except ConnectionRefusedError:
            continue
    return socket.create_connection((_LOOPBACK[-1], port), seconds)


class _Adapter(HTTPAdapter):
    """Closes its connections when told to; urllib3 waits for the garbage collector to find that nobody uses them.

    Parameters
    ----------
    opener : callable, optional
        Makes the connections instead of urllib3.
    """

    def __init__(self, opener: Opener | None = None) -> None:
        super().__init__(pool_connections=_CONNECTIONS, pool_maxsize=_CONNECTIONS)
        self._opener = opener
        if opener is not None:
            kinds = {**self.poolmanager.pool_classes_by_scheme, "http": _pool_class(opener)}
            self.poolmanager.pool_classes_by_scheme = kinds

    def send(self, request: requests.PreparedRequest, *args: Any, **settings: Any) -> requests.Response:
        """Send a request, under the name by which every master knows itself."""
        if self._opener is not None:
            request.headers["Host"] = "localhost"
        return super().send(request, *args, **settings)

    def close(self) -> None:
        """Close all connections."""
        pools = self.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 - the container cannot be iterated itself
            pool = pools.get(key)
            if pool is not None:
                pool.close()
        super().close()


def _pool_class(opener: Opener) -> type[HTTPConnectionPool]:
    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            seconds = self.timeout if isinstance(self.timeout, int | float) else None
            try:
                return opener(seconds)
            except TimeoutError as error:
                raise ConnectTimeoutError(self, f"no connection after {seconds} s") from error
            except OSError as error:
                raise NewConnectionError(self, str(error)) from error

    return type("Pool", (HTTPConnectionPool,), {"ConnectionCls": Connection})
