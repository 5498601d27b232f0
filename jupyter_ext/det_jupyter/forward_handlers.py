"""``master/...``: the master's own routes, with its token added here, where the browser never sees it."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from det_jupyter.handlers import DetHandler
from det_jupyter.routes import is_file, parameters, resolve
from det_jupyter.statuses import UnavailableError

# Everything else stays on its side: cookies, authorisation, and what belongs to one connection.
_SENT_ON = ("Accept", "Content-Type", "Idempotency-Key", "Last-Event-ID")
_ANSWERED = (
    "Content-Type",
    "Content-Length",
    "Retry-After",
    "Last-Modified",
    "ETag",
    "X-Total-Count",
    "X-Next",
    "X-Notice",
)
_BODY_LIMIT = 1 << 20
_STREAM = "text/event-stream"


class ForwardHandler(DetHandler):
    """Passes on a request and its answer, piece by piece as it comes."""

    # A page that only looks does not keep an idle server alive.
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self, path: str) -> None:
        """Read from the master."""
        await self.while_connected(lambda: self._forward("GET", path))

    @web.authenticated
    @authorized
    async def post(self, path: str) -> None:
        """Stop, pause, resume, fork or continue an experiment, or add to the registry."""
        await self.while_connected(lambda: self._forward("POST", path))

    @web.authenticated
    @authorized
    async def patch(self, path: str) -> None:
        """Change what people say of an experiment, a checkpoint or a model."""
        await self.while_connected(lambda: self._forward("PATCH", path))

    @web.authenticated
    @authorized
    async def put(self, path: str) -> None:
        """Change how many checkpoints stay."""
        await self.while_connected(lambda: self._forward("PUT", path))

    @web.authenticated
    @authorized
    async def delete(self, path: str) -> None:
        """Delete an experiment, a checkpoint, a model or a version."""
        await self.while_connected(lambda: self._forward("DELETE", path))

    async def _forward(self, method: str, path: str) -> None:
        target = resolve(method, path)
        if target is None:
            self.answer({"error": f"{method} {path} is not passed on to the master."}, HTTPStatus.NOT_FOUND)
            return
        body = self.request.body
        if len(body) > _BODY_LIMIT:
            self.answer({"error": "The body is too large."}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        headers = [(name, value) for name in _SENT_ON if (value := self.request.headers.get(name)) is not None]
        query = parameters(self.request.query)
        try:
            async with self.master.open(method, target, params=query, headers=headers, content=body) as answer:
                await self._pass_on(answer, path)
        except UnavailableError as error:
            self.answer(error.status, HTTPStatus.SERVICE_UNAVAILABLE)

    async def _pass_on(self, answer: httpx.Response, path: str) -> None:
        content_type = answer.headers.get("Content-Type", "application/json")
        self.set_status(answer.status_code)
        for name in _ANSWERED:
            if name in answer.headers:
                self.set_header(name, answer.headers[name])
        self.set_header("Cache-Control", "no-store")
        if content_type.startswith(_STREAM):
            # Proxies in front of Jupyter must not collect events.
            self.set_header("X-Accel-Buffering", "no")
        if is_file(path):
            # It names the file; whatever the master says, a browser saves it and does not open it.
            given = answer.headers.get("Content-Disposition", "")
            self.set_header("Content-Disposition", given if given.startswith("attachment;") else "attachment")
        try:
            await self.flush()
            async for piece in answer.aiter_raw():
                self.write(piece)
                await self.flush()
        except httpx.TransportError:
            self._break_off()
        except StreamClosedError:
            return  # the browser has gone
        else:
            await self.finish(set_content_type=content_type)

    def _break_off(self) -> None:
        """Close the connection, so that half an answer is not taken for the whole."""
        self._client_gone = True
        connection = self.request.connection
        if connection is not None:
            self.detach().close()
