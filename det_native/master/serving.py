"""The listening socket, and uvicorn with our order of starting and stopping."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

from det_native.errors import MasterStartError
from det_native.master.config import MasterConfig
from det_native.master.connections import UnknownConnections, counted_by

logger = logging.getLogger(__name__)

_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 120
_GRACEFUL_SECONDS = 5
_CHECK_SECONDS = 3


def listen(config: MasterConfig, last_port: int) -> socket.socket:
    """Return a bound socket: on the port that was asked for, else on that of the last start, else on any free one.

    Raises
    ------
    MasterStartError
        If the address cannot be used.
    """
    candidates = [config.port] if config.port else [last_port, 0] if last_port else [0]
    for port in candidates:
        try:
            return _bound(config.host, port)
        except OSError as error:
            if port == candidates[-1]:
                raise MasterStartError(f"cannot listen on {config.host}:{port}: {error.strerror}") from error
    raise AssertionError("the last candidate returns or raises")


def url_of(config: MasterConfig, listening: socket.socket) -> str:
    """Return the address that clients and workers use."""
    port = listening.getsockname()[1]
    host = config.host
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn()
    return f"{config.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


class Server(uvicorn.Server):
    """Says when it answers, and stops in the order: no new connections, the service, the connections that are left.

    Parameters
    ----------
    app : ASGI application
    config : MasterConfig
    on_ready : callable
        Called once requests are answered.
    on_stop : callable
        Ends what connections wait for (event streams); it may block.
    has_home : callable
        Whether the folder that this is the master of is still there; without it nobody could find it, or stop it.
    """

    def __init__(
        self,
        app: Any,
        config: MasterConfig,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
        has_home: Callable[[], bool],
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

    def stop(self) -> None:
        """Have it end soon; may be called from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop answering."""
        for server in self.servers:
            server.close()
        await asyncio.to_thread(self._on_stop)
        await super().shutdown(sockets)

    async def _stop_without_home(self) -> None:
        if not self._has_home():
            logger.warning("the master's folder was deleted: it stops")
            self.stop()

    def serve_until_stopped(self, listening: socket.socket) -> None:
        """Answer requests until SIGTERM or SIGINT."""
        # uvicorn sends itself the signal again when it is done; the rest of the program is still to come then.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: None)
        self.run(sockets=[listening])


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
