"""Whether a request of a browser belongs to a session, and comes from the page of this master."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from det_native.master.connections import connection_of
from det_native.master.sessions import BrowserSession, Sessions
from det_native.schema.page import KEY_HEADER, TICKET_PARAMETER

_COOKIE = "det-session"
_TICKET = f"{TICKET_PARAMETER}=".encode()
# What a browser says of a request that its user or a page of the same origin has made.
_OWN_SITES = frozenset({"same-origin", "none"})


def is_by_socket(scope: Scope) -> bool:
    """Return whether a request has come over the master's Unix socket."""
    connection = connection_of(scope.get("state", {}))
    return connection is not None and connection.by_socket


def is_encrypted(scope: Scope) -> bool:
    """Return whether a request has come by TLS."""
    return bool(scope["scheme"] == "https")


def cookie_name(scope: Scope) -> str:
    """Return how the cookie of this master is called in the browser: all ports of a machine share their cookies."""
    host = Headers(scope=scope).get("host", "")
    port = host.rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""
    name = f"{_COOKIE}-{port}" if port.isdigit() else _COOKIE
    return f"__Host-{name}" if is_encrypted(scope) else name


def comes_from_elsewhere(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser says that another page, or one of another port, has made a request."""
    origin = headers.get("origin")
    if origin is not None:
        parts = urlsplit(origin)
        if (parts.scheme, parts.netloc) != (scope["scheme"], headers.get("host", "")):
            return True
    site = headers.get("sec-fetch-site")
    return site is not None and site not in _OWN_SITES


def presents_session(scope: Scope, headers: Headers) -> bool:
    """Return whether a request is meant to belong to a session."""
    return KEY_HEADER.lower() in headers or _split_ticket(scope["query_string"])[1] != b""


def session_of(scope: Scope, headers: Headers, sessions: Sessions) -> BrowserSession | None:
    """Return the session of a request, None if it has none; a ticket is spent and left out of its query."""
    cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(scope), "")
    if not cookie:
        return None
    by_socket = is_by_socket(scope)
    key = headers.get(KEY_HEADER)
    if key is not None:
        return sessions.find(cookie, key, by_socket=by_socket)
    query, ticket = _split_ticket(scope["query_string"])
    if not ticket or scope["method"] != "GET":
        return None
    path = scope.get("raw_path") or scope["path"].encode()
    address = path.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
    session = sessions.take_ticket(cookie, ticket.decode("latin-1"), address, by_socket=by_socket)
    if session is not None:
        scope["query_string"] = query
    return session


def _split_ticket(query: bytes) -> tuple[bytes, bytes]:
    """Return a query without the ticket at its end, and the ticket."""
    rest, sign, last = query.rpartition(b"&")
    if not last.startswith(_TICKET):
        return query, b""
    return (rest if sign else b""), last.removeprefix(_TICKET)
