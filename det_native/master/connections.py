"""Connections that have not shown a token: few at a time and for a short while, so that they cannot use up all."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import time
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from det_native.schema.introduction import Meeting, address_text, draw
from det_native.schema.sockets import peer_uid

logger = logging.getLogger(__name__)

SECONDS_WITHOUT_TOKEN = 10.0
MOST_WITHOUT_TOKEN = 256
_SECONDS_BETWEEN_WARNINGS = 60.0
# Workers inherit the limit, and some programs close every descriptor that it allows before they start another.
_MOST_DESCRIPTORS = 65536
_ROOT = 0


def raise_descriptor_limit() -> int:
    """Let this process open as many files and connections as the system allows it; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS has a lower limit beside this one
        return soft
    return wanted


class UnknownConnections:
    """The connections of one server that have not shown a token yet, oldest first.

    Parameters
    ----------
    most : int
        One more closes the oldest of them.
    seconds : float
        How long each may stay without a token.
    """

    def __init__(self, most: int = MOST_WITHOUT_TOKEN, seconds: float = SECONDS_WITHOUT_TOKEN) -> None:
        self._most = most
        self._seconds = seconds
        self._open: OrderedDict[Connection, asyncio.TimerHandle] = OrderedDict()
        self._closed = 0
        self._warned: float | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """Count a new connection, and close the oldest if there are too many."""
        loop = asyncio.get_running_loop()
        self._open[connection] = loop.call_later(self._seconds, self._close, connection)
        while len(self._open) > self._most:
            self._close(next(iter(self._open)))

    def remove(self, connection: Connection) -> None:
        """Forget a connection: it has shown a token, or it is closed."""
        timer = self._open.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.transport.close()
        self._closed += 1
        now = time.monotonic()
        if self._warned is None or now - self._warned >= _SECONDS_BETWEEN_WARNINGS:
            logger.warning(
                "%d connections were closed that showed no token within %.0f s, or were too many without one (%d may "
                "be open at a time); the newest came from %s",
                self._closed,
                self._seconds,
                self._most,
                connection.client[0] if connection.client else "this machine",
            )
            self._warned = now
            self._closed = 0


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection of the server; requests find it as ``connection`` in their state.

    `unknown` is set by the subclass that :func:`counted_by` makes.
    """

    unknown: UnknownConnections

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to count it; one of another user at our socket is closed."""
        self.app_state: dict[str, Any] = {**self.app_state, "connection": self}
        #: What it and the master know of its introduction (:mod:`schema.introduction`), and whether that was a success.
        self.meeting: Meeting | None = None
        self.introduced = False
        line = transport.get_extra_info("socket")
        self.by_socket = line.family == socket.AF_UNIX
        #: Whether others could read a token that is sent over it: by a port that is not encrypted.
        self.in_the_clear = not self.by_socket and transport.get_extra_info("sslcontext") is None
        super().connection_made(transport)
        self.unknown.add(self)
        if self.by_socket and peer_uid(line) not in (None, os.geteuid(), _ROOT):
            logger.warning("a connection of another user (%s) to the master's socket was closed", peer_uid(line))
            transport.abort()

    def meet(self, drawn: str) -> Meeting:
        """Begin an introduction; `drawn` is the client's number."""
        self.meeting = Meeting(drawn, draw(), address_text(self.transport.get_extra_info("socket").getsockname()))
        return self.meeting

    def introduce(self) -> None:
        """Take the client for one that knows the user's token, for as long as the connection stands."""
        self.introduced = True
        self.has_shown_token()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.unknown.remove(self)
        super().connection_lost(exc)

    def has_shown_token(self) -> None:
        """Let it stay for as long as it likes."""
        self.unknown.remove(self)


def counted_by(unknown: UnknownConnections) -> type[asyncio.Protocol]:
    """Return the class of the connections of one server."""
    return type("CountedConnection", (Connection,), {"unknown": unknown})


def connection_of(state: dict[str, Any]) -> Connection | None:
    """Return the connection over which a request has come; None where the server is none of ours."""
    connection = state.get("connection")
    return connection if isinstance(connection, Connection) else None
