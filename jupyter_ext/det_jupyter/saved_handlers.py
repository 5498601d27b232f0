"""``saved/...``: what a notebook keeps of an experiment whose kernel is gone."""

from __future__ import annotations

import asyncio
import json
import sys
from http import HTTPStatus

from jupyter_server.auth.decorator import authorized
from tornado import web

from det_jupyter.handlers import OPTIONS_SETTING, DetHandler, Options
from det_jupyter.programs import run_program

PROGRAM = "det_native.experimental.saved"


class SavedHandler(DetHandler):
    """Has the last state told and drawn, in a process of its own."""

    # A page that only looks does not keep an idle server alive.
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self, kind: str, number: str) -> None:
        """Answer with what the program says."""
        await self.while_connected(lambda: self._tell(kind, number))

    async def _tell(self, kind: str, number: str) -> None:
        options: Options = self.settings[OPTIONS_SETTING]
        command = (sys.executable, "-P", "-m", PROGRAM, kind, number)
        try:
            async with asyncio.timeout(options.answer_seconds), options.drawing:
                finished = await run_program(command, seconds=options.answer_seconds)
        except TimeoutError:
            error = f"What is to be saved of {kind}/{number} was not there after {options.answer_seconds:.0f} s."
            self.answer({"error": error}, HTTPStatus.GATEWAY_TIMEOUT)
            return
        if finished.code:
            lines = finished.said.strip().splitlines() or ["It said nothing."]
            self.answer({"error": lines[-1]}, HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self.answer(json.loads(finished.answered))
