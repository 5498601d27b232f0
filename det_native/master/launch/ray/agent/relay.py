"""The socket that is the master to the workers of this machine: what they ask there is passed on."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from det_native.errors import DetError
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.reports import UNAVAILABLE, ReportPasser
from det_native.master.launch.ray.agent.runs_here import RunHere
from det_native.master.launch.ray.asks.kinds import Request, Response
from det_native.master.launch.ray.asks.master_line import refusal
from det_native.schema.routes import POST_REPORTS

logger = logging.getLogger(__name__)

_KEPT_HEADERS = frozenset({b"authorization", b"content-type", b"x-det-protocol", b"user-agent", b"accept"})
_MOST_BYTES = 16 << 20
_KEEP_ALIVE_SECONDS = 120
# Less than a worker waits for an answer to its reports.
_ANSWER_SECONDS = 25.0


class Relay:
    """Answers workers as the master does, by asking it.

    Parameters
    ----------
    runs : mapping
        The runs with processes here.
    """

    def __init__(self, asks: AskQueue, passer: ReportPasser, runs: Mapping[str, RunHere]) -> None:
        self._asks = asks
        self._passer = passer
        self._runs = runs
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def open(self, listening: socket.socket) -> None:
        """Begin to answer at a socket."""
        config = uvicorn.Config(
            self._application,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        config.load()
        kind: Any = config.http_protocol_class

        def make() -> asyncio.Protocol:
            made: asyncio.Protocol = kind(config=config, server_state=self._state, app_state={})
            return made

        self._server = await asyncio.get_running_loop().create_unix_server(make, sock=listening)

    async def close(self, path: Path) -> None:
        """Stop answering; `path` is that of the socket."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        path.unlink(missing_ok=True)

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > _MOST_BYTES:
                await _send(send, refusal(413, f"A request has more than {_MOST_BYTES} bytes."))
                return
        await _send(send, await self._answer(_request(scope, bytes(body))))

    async def _answer(self, request: Request) -> Response:
        if not self._asks.attended:
            return refusal(UNAVAILABLE, "The master is away; try again.")
        try:
            return await asyncio.wait_for(self._passed(request), _ANSWER_SECONDS)
        except TimeoutError:
            return refusal(UNAVAILABLE, "The master does not answer; try again.")
        except DetError as error:
            return refusal(UNAVAILABLE, str(error))

    async def _passed(self, request: Request) -> Response:
        reports = POST_REPORTS.match(request.path)
        if reports is not None and request.method == "POST":
            run = self._runs.get(reports["run_id"])
            if run is None:
                return refusal(404, f"No process of run {reports['run_id']} is on this machine.")
            return await self._passer.pass_on(run, request)
        response = await self._asks.ask(request)
        assert isinstance(response, Response)
        return response


def _request(scope: Any, body: bytes) -> Request:
    path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _KEPT_HEADERS}
    return Request(scope["method"], f"{path}?{query}" if query else path, headers, body)


async def _send(send: Any, response: Response) -> None:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in response.headers.items()]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
