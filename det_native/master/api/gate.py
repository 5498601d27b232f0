"""Who may come in: a piece of ASGI around the whole application, so that no route can be added outside of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from det_native._version import __version__
from det_native.master.api import page_access, static_page
from det_native.master.api.errors import refusal
from det_native.master.connections import Connection, connection_of
from det_native.master.sessions import BrowserSession, Sessions
from det_native.schema.routes import BODY_LIMIT, ROUTES, Access, find_route

PUBLIC = frozenset((route.method, route.path) for route in ROUTES.values() if route.access is Access.PUBLIC)
# Files of the page, which are the same for everybody.
PAGE_FILES = frozenset((method, path) for method in ("GET", "HEAD") for path in static_page.PATHS)
#: Everything that is answered without a token.
OPEN = PUBLIC | PAGE_FILES
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# A body of which nothing comes for so long is given up.
BODY_SILENCE_SECONDS = 60.0
LIMITS = {route.path: route.body_limit for route in ROUTES.values() if route.body_limit != BODY_LIMIT}

_OF_RUNS = [route for route in ROUTES.values() if route.access is Access.RUN]
_OF_PAGES = (Access.PUBLIC, Access.FRONT_END, Access.SESSION)
_IN_THE_CLEAR = (
    f"This master ({__version__}) takes no token in the clear: another user may have had its port before. Upgrade the "
    f"client (pip install det-native=={__version__}), or use the master's socket, DET_HOME/master.sock; the token "
    "that was sent is best replaced: `det down`, remove DET_HOME/token, `det up`."
)
_SIGNED_OUT = (
    "You are signed out of the master's page: the session has ended, or the master was started again. To sign in, run "
    "det open --page."
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"


class Guard(Protocol):
    """Knows the tokens."""

    def is_user(self, token: str) -> bool:
        """Whether a token is the user's."""

    def is_run(self, run_id: str, token: str) -> bool:
        """Whether a token is that of a run."""


class Gate:
    """Refuses by default: foreign hosts and origins, requests without a token, and bodies beyond the limit.

    Parameters
    ----------
    app : ASGI application
        Everything behind the gate.
    owner : str
        Whom the user's token stands for; routes find it in the request's state.
    sessions : Sessions
        Browsers that are signed in at the page.
    hosts : iterable of str
        Names under which the master may be addressed, besides those of loopback.
    """

    def __init__(self, app: ASGIApp, guard: Guard, owner: str, sessions: Sessions, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._guard = guard
        self._sessions = sessions
        self._owner = owner
        self._hosts = LOOPBACK | {host.lower().strip("[]") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "The master has no websockets."})
            return
        limit = LIMITS.get(scope["path"], BODY_LIMIT)
        refused = self._refusal(scope, limit)
        if refused is not None:
            await refused(scope, receive, send)
            return
        scope.setdefault("state", {})["owner"] = self._owner
        sent = _with_headers(send)
        session = scope["state"].get("session")
        await self._app(scope, _limited(receive, limit), sent if session is None else _while_signed_in(session, sent))

    def _refusal(self, scope: Scope, limit: int) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            return refusal(403, f"This master is not called {host!r}. Use its own address (see `det status`).")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in SAFE_METHODS and urlsplit(origin).netloc != host:
            return refusal(403, f"Pages of {origin!r} may not use this master.")
        connection = connection_of(scope.get("state", {}))
        if connection is not None and connection.in_the_clear and "authorization" in headers:
            return refusal(426, _IN_THE_CLEAR)
        if self._is_known(scope["path"], headers, connection):
            if connection is not None:
                connection.has_shown_token()
        elif page_access.presents_session(scope, headers):
            refused = self._refusal_of_session(scope, headers, connection)
            if refused is not None:
                return refused
        elif (scope["method"], scope["path"]) not in OPEN:
            return refusal(
                401,
                "A valid token is missing: send `Authorization: Bearer <token>` with the token in DET_HOME/token.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limit:
            return refusal(413, f"The body is larger than {limit >> 20} MiB.")
        return None

    def _refusal_of_session(self, scope: Scope, headers: Headers, connection: Connection | None) -> Response | None:
        """Look at a request of the page; its session is put into the request's state."""
        if page_access.comes_from_elsewhere(scope, headers):
            return refusal(403, "Only the master's own page may use its session.")
        session = page_access.session_of(scope, headers, self._sessions)
        if session is None:
            return refusal(401, _SIGNED_OUT)
        if not is_for_pages(scope["method"], scope["path"]):
            return refusal(403, f"{scope['method']} {scope['path']} is not for pages: use `det` or Python for it.")
        scope.setdefault("state", {})["session"] = session
        if connection is not None:
            connection.has_shown_token()
        return None

    def _is_known(self, path: str, headers: Headers, connection: Connection | None) -> bool:
        if connection is not None and connection.introduced:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return False
        if self._guard.is_user(token):
            return True
        matches = (route.match(path) for route in _OF_RUNS)
        return any(match is not None and self._guard.is_run(match["run_id"], token) for match in matches)


def is_for_pages(method: str, path: str) -> bool:
    """Return whether a browser's session opens a request."""
    route = find_route(method, path)
    return route is not None and route.access in _OF_PAGES


def _name_of(host: str) -> str:
    """Return the name in a Host header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0][1:].lower()
    return host.partition(":")[0].lower()


def _limited(receive: Receive, limit: int) -> Receive:
    taken = 0
    whole = False

    async def receive_some() -> Message:
        nonlocal taken, whole
        if whole:  # what is waited for now is the end of the connection
            return await receive()
        try:
            async with asyncio.timeout(BODY_SILENCE_SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"Nothing more of the body came for {BODY_SILENCE_SECONDS:.0f} s.") from None
        whole = not message.get("more_body", False)
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, f"The body is larger than {limit >> 20} MiB.")
        return message

    return receive_some


def _while_signed_in(session: BrowserSession, send: Send) -> Send:
    """End an answer when its session has ended: a stream of events would go on for as long as somebody listens."""
    cut = False

    async def send_on(message: Message) -> None:
        nonlocal cut
        if cut:
            return
        if session.over and message["type"] == "http.response.body" and message.get("more_body", False):
            cut = True
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    return send_on


def _with_headers(send: Send) -> Send:
    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Content-Security-Policy", _POLICY)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_more
