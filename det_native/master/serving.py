"""The sockets that it listens at, and uvicorn with our order of starting and stopping."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn

from det_native.errors import MasterStartError
from det_native.master.config import LOOPBACK, MasterConfig
from det_native.master.connections import UnknownConnections, counted_by
from det_native.schema.home import Home
from det_native.schema.sockets import fits, short_path

logger = logging.getLogger(__name__)

_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 120
_GRACEFUL_SECONDS = 5
_CHECK_SECONDS = 3
_SOCKET_MODE = 0o600


@contextmanager
def local_socket(home: Home) -> Iterator[socket.socket]:
    """Listen at the socket of a home for the block, as the only one: the home's lock is held.

    Its path is ``master.sock`` in the home, or a shorter one where that is too long, or the file system has no sockets.

    Raises
    ------
    MasterStartError
        If there is no place for it.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path = _bind_locally(listening, home)
        path.chmod(_SOCKET_MODE)
        listening.listen(_BACKLOG)
        made = path.lstat()
        yield listening
    finally:
        listening.close()
    with suppress(FileNotFoundError):
        if os.path.samestat(path.lstat(), made):  # and not that of a master in a home that was made anew
            path.unlink()


def _bind_locally(listening: socket.socket, home: Home) -> Path:
    reason: OSError | None = None
    for short in (False, True):
        try:
            # Not below TMPDIR, which may be that of a job or a session and end with it.
            path = short_path(str(home.path), ("/tmp",)) if short else home.socket
            if fits(path):
                path.unlink(missing_ok=True)
                listening.bind(str(path))
                return path
        except OSError as error:
            reason = error
    raise MasterStartError(f"cannot listen at {home.socket}: {reason}") from reason


def listen(config: MasterConfig, last_port: int) -> socket.socket | None:
    """Return a socket of TCP, bound: to the port that was asked for, else that of the last start, else any free one.

    Where TCP was not asked for, it is None.

    Raises
    ------
    MasterStartError
        If the address cannot be used.
    """
    if config.tcp is None:
        return None
    try:
        return _bound(config.tcp, config.port) if config.port else _bound_again(config.tcp, last_port)
    except OSError as error:
        raise MasterStartError(f"cannot listen on {config.tcp}:{config.port}: {error.strerror}") from error


def tcp_url(config: MasterConfig, listening: socket.socket) -> str:
    """Return the address of TCP that clients use."""
    port = listening.getsockname()[1]
    host = config.tcp or ""
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn()
    return f"{config.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


class Server(uvicorn.Server):
    """Says when it answers, and stops in the order: no new connections, the service, the connections that are left.

    Parameters
    ----------
    on_ready : callable
        Called once requests are answered.
    on_stop : callable
        Ends what connections wait for (event streams); it may block.
    has_home : callable
        Says whether the folder that this is the master of is still there; without it nobody could find it, or stop it.
    """

    def __init__(
        self,
        app: Any,
        config: MasterConfig,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
        has_home: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=counted_by(UnknownConnections()),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACEFUL_SECONDS,
                ssl_certfile=config.certificate,
                ssl_keyfile=str(config.key) if config.key else None,
                timeout_notify=_CHECK_SECONDS,
                callback_notify=self._stop_without_home,
            )
        )
        self._has_home = has_home
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._browsers: socket.socket | None = None

    def stop(self) -> None:
        """Have it end soon; may be called from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer; TLS is for TCP only."""
        await super().startup([])
        for listening in sockets or []:
            await self.listen_at(listening)
        if self.started and not self.should_exit:
            self._on_ready()

    async def listen_at(self, listening: socket.socket) -> None:
        """Answer at one more socket."""
        loop = asyncio.get_running_loop()
        if listening.family == socket.AF_UNIX:
            made = await loop.create_unix_server(self._connection, sock=listening, backlog=_BACKLOG)
        else:
            made = await loop.create_server(self._connection, sock=listening, ssl=self.config.ssl, backlog=_BACKLOG)
        self.servers.append(made)

    async def open_to_browsers(self, last_port: int) -> int:
        """Answer at a port of loopback, too, from the first call on until the end; return it.

        It is that of the master before, where that is free: pages that are open go on once their browser is signed in.
        """
        if self._browsers is None:
            self._browsers = _bound_again(LOOPBACK, last_port)
            await self.listen_at(self._browsers)
            logger.info("answers browsers of this machine at port %d", self._browsers.getsockname()[1])
        port: int = self._browsers.getsockname()[1]
        return port

    def _connection(self) -> asyncio.Protocol:
        kind: Any = self.config.http_protocol_class
        made: asyncio.Protocol = kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop answering."""
        for server in self.servers:
            server.close()
        await asyncio.to_thread(self._on_stop)
        await super().shutdown(sockets)

    async def _stop_without_home(self) -> None:
        if not await self._has_home():
            logger.warning("the master's folder was deleted, or another master has it: it stops")
            self.stop()

    def serve_until_stopped(self, *listening: socket.socket) -> None:
        """Answer requests until SIGTERM or SIGINT."""
        # uvicorn sends itself the signal again when it is done; the rest of the program is still to come then.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: None)
        self.run(sockets=list(listening))


def _bound_again(host: str, last_port: int) -> socket.socket:
    """Return a socket at the port of the last start, else at any free one."""
    if last_port:
        with suppress(OSError):
            return _bound(host, last_port)
    return _bound(host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made
