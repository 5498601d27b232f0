"""Posts JSON to a webhook."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from det_native._version import __version__
from det_native.master.notify.errors import SendError
from det_native.schema.notify import check_webhook, why_not

_SECONDS = 10.0
_ANSWER_BYTES = 65_536
_AGAIN = frozenset({408, 425, 429})
SIGNATURE = "X-Det-Signature"


def post(url: str, content: Mapping[str, Any], *, event: str, delivery: str, secret: str | None = None) -> None:
    """Post JSON, once, and follow no redirection.

    Parameters
    ----------
    event : str
        Header ``X-Det-Event``.
    delivery : str
        Header ``X-Det-Delivery``, the same each time that the message is tried: the receiver can tell that it has it.
    secret : str, optional
        By it the body is signed: ``X-Det-Signature: sha256=<HMAC in hex>``.

    Raises
    ------
    SendError
        If it is not taken.
    """
    try:
        parts = urlsplit(check_webhook(url))
    except ValueError as error:
        raise SendError(f"the address {error}", lasting=True) from error
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"det_native/{__version__}",
        "X-Det-Event": event,
        "X-Det-Delivery": delivery,
    }
    if secret:
        headers[SIGNATURE] = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    host = str(parts.hostname)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            connection = _Tls(host, parts.port, timeout=_SECONDS, context=ssl.create_default_context())
        else:
            connection = _Plain(host, parts.port, timeout=_SECONDS)
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse()
            status.read(_ANSWER_BYTES)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        words = type(error).__name__ if isinstance(error, http.client.HTTPException) else str(error)
        raise SendError(f"{host} does not answer: {words}") from error
    if not 200 <= status.status < 300:
        lasting = 300 <= status.status < 500 and status.status not in _AGAIN
        raise SendError(f"{host} answers {status.status} {status.reason}", lasting=lasting)


def _checked(host: str, sock: socket.socket) -> None:
    """Refuse a connection to where nothing is sent, whatever the name stands for at this moment."""
    refused = why_not(str(sock.getpeername()[0]))
    if refused:
        sock.close()
        raise SendError(f"{host} is an address that nothing is sent to: {refused}", lasting=True)


class _Plain(http.client.HTTPConnection):
    def connect(self) -> None:
        """Connect, and see to whom."""
        super().connect()
        _checked(self.host, self.sock)


class _Tls(http.client.HTTPSConnection):
    def connect(self) -> None:
        """Connect, and see to whom."""
        super().connect()
        _checked(self.host, self.sock)
