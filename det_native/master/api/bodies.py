"""How bodies are read: as JSON that can be written again. What cannot, would fail wherever it is asked for later."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.responses import Response


class _Request(Request):
    async def json(self) -> Any:
        """Return the body's value.

        Python's own reader takes halves of surrogate pairs, which no answer can hold.

        Raises
        ------
        json.JSONDecodeError
        """
        if not hasattr(self, "_json"):
            try:
                self._json = from_json(await self.body())
            except ValueError as error:
                raise json.JSONDecodeError(str(error), "", 0) from None
        return self._json


class StrictRoute(APIRoute):
    """A route of the master."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def read_strictly(request: Request) -> Response:
            return await answer(_Request(request.scope, request.receive))

        return read_strictly
