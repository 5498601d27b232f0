"""``tensorboard/<key>/...``: a TensorBoard that a kernel has started, behind this server's own login."""

from __future__ import annotations

import json
import re
from http import HTTPStatus

import httpx
from jupyter_server.auth.decorator import authorized
from tornado import web

from det_jupyter.handlers import DetHandler
from det_native.schema.home import Home

KEY = "[0-9a-f]{16}"
_PATH = re.compile(r"[\w./+@-]*")
_FOLDER = "tensorboards"
_SECONDS = 60.0


class TensorBoardHandler(DetHandler):
    """Passes requests on to it; its path there is a secret that the browser does not see."""

    _track_activity = False

    @property
    def content_security_policy(self) -> str:
        """Its pages run scripts, and are shown within pages of this server only."""
        return "frame-ancestors 'self'; base-uri 'self'; object-src 'none'"

    def check_xsrf_cookie(self) -> None:
        """Ask for no cookie: it changes nothing that is posted to it, and its pages know none."""

    @web.authenticated
    @authorized
    async def get(self, key: str, path: str) -> None:
        """Read from it."""
        await self.while_connected(lambda: self._forward("GET", key, path))

    @web.authenticated
    @authorized
    async def post(self, key: str, path: str) -> None:
        """Ask it for much at once, which it takes by POST."""
        await self.while_connected(lambda: self._forward("POST", key, path))

    async def _forward(self, method: str, key: str, path: str) -> None:
        try:
            place = json.loads((Home.default().path / _FOLDER / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.answer({"error": "That TensorBoard does not run any more: open it again."}, HTTPStatus.NOT_FOUND)
            return
        if not _PATH.fullmatch(path) or ".." in path.split("/"):
            self.answer({"error": "There is nothing at that path."}, HTTPStatus.NOT_FOUND)
            return
        url = f"http://127.0.0.1:{int(place['port'])}/{place['prefix']}/{path}"
        kind = self.request.headers.get("Content-Type")
        headers = {"Content-Type": kind} if kind else {}
        try:
            async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
                answer = await client.request(
                    method, f"{url}?{self.request.query}", content=self.request.body, headers=headers
                )
        except httpx.TransportError:
            self.answer({"error": "That TensorBoard does not answer: open it again."}, HTTPStatus.BAD_GATEWAY)
            return
        self.set_status(answer.status_code)
        self.set_header("Cache-Control", "no-store")
        self.write(answer.content)
        await self.finish(set_content_type=answer.headers.get("Content-Type", "text/plain"))
