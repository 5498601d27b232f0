"""The page of the workspace before a master's socket: a server of the test that adds the token to each request."""

from __future__ import annotations

import contextlib
import mimetypes
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from det_native.display.widget import STATIC
from det_native.schema.home import Home

_PASSED = ("content-type", "x-total-count", "x-next", "x-notice")


def application(home: Home) -> Starlette:
    """Return what serves the page, and passes requests of ``/api/v1`` on to the master of a home."""
    folder = STATIC / "page"
    transport = httpx.AsyncHTTPTransport(uds=str(home.path / "master.sock"))
    client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None)
    authorization = {"Authorization": f"Bearer {home.token.read_text().strip()}"}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        return Response((folder / name).read_bytes(), media_type=mimetypes.guess_type(name)[0])

    async def forward(request: Request) -> Response:
        headers = {**authorization, "Content-Type": request.headers.get("content-type", "")}
        address = f"{request.url.path}?{request.url.query}"
        body = await request.body() or None
        asked = client.build_request(request.method, address, headers=headers, content=body)
        answer = await client.send(asked, stream=True)

        async def content() -> AsyncIterator[bytes]:
            try:
                async for part in answer.aiter_raw():
                    yield part
            finally:
                await answer.aclose()

        passed = {name: answer.headers[name] for name in _PASSED if name in answer.headers}
        return StreamingResponse(content(), answer.status_code, headers=passed)

    methods = ["GET", "POST", "PATCH", "PUT", "DELETE"]
    return Starlette(
        routes=[
            Route("/api/v1/{path:path}", forward, methods=methods),
            Route("/page/", page),
            Route("/page/{name}", page),
        ]
    )


@contextlib.contextmanager
def served_page(home: Home) -> Iterator[str]:
    """Serve the page while the block runs; give its address, to which ``#/experiments`` is added."""
    config = uvicorn.Config(application(home), port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive(), "the server of the page did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/page/"
    finally:
        server.should_exit = True
        thread.join(10)
