"""``status`` and ``start``."""

from __future__ import annotations

from http import HTTPStatus

from jupyter_server.auth.decorator import authorized
from tornado import web

from det_jupyter.handlers import DetHandler


class StatusHandler(DetHandler):
    """How the master is."""

    # A page that only looks does not keep an idle server alive.
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with a `Status`; whatever the master does, it is 200."""
        self.answer(await self.master.status())


class StartHandler(DetHandler):
    """Starting the master of this machine."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin to start it and answer with a `Status`; 409 where the environment names another master."""
        status = await self.master.status()
        if status.state == "running":
            self.answer(status)
        elif self.master.start():
            self.answer(await self.master.status())
        else:
            self.answer(status, HTTPStatus.CONFLICT)
