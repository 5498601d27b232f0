"""How ``httpx`` gets to a master: over a Unix socket of this user's, or over TCP to one that proves itself."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx

from det_native.client.addresses import is_loopback, proves_itself
from det_native.client.connect import Address
from det_native.schema.introduction import address_text, conversation
from det_native.schema.sockets import NotOursError, check_peer, is_socket, path_of

_CONNECT_SECONDS = 5.0
_KEPT_CONNECTIONS = 16
_PIECE = 4096
_BUNDLE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
# Under this name every master knows itself, however it is reached.
_LOCAL = "http://localhost"
_MADE = ("connection.connect_unix_socket.complete", "connection.connect_tcp.complete")


class Lines:
    """The clients for the addresses that masters have."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], httpx.AsyncClient] = {}

    def client(self, address: Address) -> tuple[httpx.AsyncClient, str]:
        """Return the client for an address, and what a URL for it begins with.

        Over plain TCP, a client of an address without a token asks nobody who he is.
        """
        key = (address.url, address.token if proves_itself(address.url) else "")
        if key not in self._clients:
            self._clients[key] = _made(*key)
        return self._clients[key], _LOCAL if is_socket(address.url) else address.url

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()


def _made(url: str, token: str) -> httpx.AsyncClient:
    # A proxy cannot reach this machine's loopback for us.
    local = is_loopback(url)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS)
    own = _Checked(url, token, verify=_certificates(), limits=limits) if local else None
    return httpx.AsyncClient(
        transport=own, trust_env=not local, verify=_certificates(), follow_redirects=False, limits=limits
    )


class _Checked(httpx.AsyncHTTPTransport):
    """Looks at who is at the other end of each connection of this machine before it is used."""

    def __init__(self, url: str, token: str, **settings: Any) -> None:
        super().__init__(uds=str(path_of(url)) if is_socket(url) else None, trust_env=False, **settings)
        self._url = url
        self._token = token

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        request.extensions["trace"] = self._look
        return await super().handle_async_request(request)

    async def _look(self, event: str, info: dict[str, Any]) -> None:
        if event not in _MADE:
            return
        stream = info["return_value"]
        try:
            line: socket.socket = stream.get_extra_info("socket")
            if is_socket(self._url):
                check_peer(line, self._url)
            elif self._token:
                await _introduce(stream, self._token, address_text(line.getpeername()))
        except NotOursError as error:
            await stream.aclose()
            raise httpx.ConnectError(str(error)) from error
        except BaseException:
            await stream.aclose()
            raise


async def _introduce(stream: Any, token: str, address: str) -> None:
    talk = conversation(token, address)
    said = next(talk)
    while True:
        if said:
            await stream.write(said, timeout=_CONNECT_SECONDS)
        came = await stream.read(_PIECE, timeout=_CONNECT_SECONDS)
        try:
            said = talk.send(came)
        except StopIteration:
            return


def _certificates() -> ssl.SSLContext | bool:
    """Return whom to trust: what the client's own library, requests, is told by the environment."""
    for name in _BUNDLE_VARIABLES:
        path = os.environ.get(name)
        if path:
            folder = Path(path).is_dir()
            return ssl.create_default_context(cafile=None if folder else path, capath=path if folder else None)
    return True
