"""What all handlers have in common."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_server.base.handlers import APIHandler
from pydantic import BaseModel

from det_jupyter.master import Master

MASTER_SETTING = "det_jupyter_master"
OPTIONS_SETTING = "det_jupyter_options"


@dataclass(frozen=True)
class Options:
    """Settings of the extension that handlers read.

    Attributes
    ----------
    answer_seconds : float
        How long an answer may take.
    drawing : asyncio.Lock
        Held while something is drawn, which takes a processor for a second or two: a notebook with many displays is not
        to take all of them.
    """

    answer_seconds: float
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)


class DetHandler(APIHandler):
    """Answers in JSON, lets nothing of an answer run as a page, and stops working for a client that has gone."""

    auth_resource = "det_native"
    _work: asyncio.Task[None] | None = None
    _client_gone = False

    @property
    def master(self) -> Master:
        """The master."""
        found: Master = self.settings[MASTER_SETTING]
        return found

    @property
    def content_security_policy(self) -> str:
        """Jupyter's policy for answers of an API, without any script."""
        return f"{super().content_security_policy}; sandbox"

    def answer(self, body: BaseModel | dict[str, Any] | list[Any], status: int = 200) -> None:
        """Send a body as JSON."""
        self.set_status(status)
        self.finish(json.dumps(body.model_dump(mode="json") if isinstance(body, BaseModel) else body))

    async def while_connected(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work of this request; it is cancelled when the client closes the connection."""

        async def do() -> None:
            await work()

        if self._client_gone:
            return
        self._work = asyncio.create_task(do())
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._client_gone:
                raise

    def on_connection_close(self) -> None:
        """End what is done for a client that does not wait any more."""
        super().on_connection_close()
        if self._work is not None and not self._client_gone:
            self._work.cancel()
        self._client_gone = True
