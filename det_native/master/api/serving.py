"""Handlers of routes: a route of the table and the function that answers it make a route of FastAPI."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache, wraps
from types import NoneType
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from det_native.master.api.answers import respond
from det_native.schema.rest import ErrorBody
from det_native.schema.routes import ROUTES, Route

Answer = TypeVar("Answer")
Handler = Callable[..., Answer | Response | Awaitable[Answer | Response]]

_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
#: Statuses with which any route may refuse.
_COMMON = (401, 403, 413, 422, 500, 503, 507)
_SENTENCES = {
    400: "The request contradicts itself or what is stored.",
    401: "The token is missing or wrong.",
    403: "The master is addressed by a foreign name, or from a foreign page.",
    404: "There is no such thing.",
    409: "What is stored does not allow it.",
    413: "The body is too large.",
    422: "The request is not valid; `problems` lists everything that is wrong.",
    424: "The storage of the checkpoints does not answer.",
    429: "Too many wrong tries.",
    426: "Client and master speak different protocols.",
    500: "Something failed inside the master.",
    503: "The master cannot do it at the moment.",
    507: "The disk is full.",
}
_handlers: dict[Route[Any, Any], tuple[Handler[Any], dict[str, Any]]] = {}


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


class _AnyPath(PathConvertor):
    """A path in an address: names of files may have line breaks."""

    regex = "(?s:.*)"


register_url_convertor("path", _AnyPath())


class _StrictRoute(APIRoute):
    """A route whose body is JSON that can be written again: what cannot, would fail wherever it is asked for later."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def read_strictly(request: Request) -> Response:
            return await answer(_Request(request.scope, request.receive))

        return read_strictly


def serve(route: Route[Any, Answer], **response: Any) -> Callable[[Handler[Answer]], Handler[Answer]]:
    """Have a function answer a route: it returns the route's answer, or a response of its own.

    Parameters
    ----------
    **response
        What the description of the interface says of the answer besides its model: ``headers``, ``content``.
    """

    def register(handler: Handler[Answer]) -> Handler[Answer]:
        _handlers[route] = handler, response
        return handler

    return register


@cache
def master_routes() -> tuple[BaseRoute, ...]:
    """Return all routes of the table with their handlers, for every application of this process.

    Put them into an application as they are: what FastAPI includes, it builds once more, in the first request to it.
    """
    router = APIRouter(route_class=_StrictRoute)
    for name, route in ROUTES.items():
        handler, response = _handlers[route]
        is_json = route.answer not in (bytes, NoneType)
        if route.answer is bytes:
            response = {"content": _BYTES, "description": "The content.", **response}
        refusals = sorted({*_COMMON, *route.refusals})
        router.add_api_route(
            route.path,
            _endpoint(route, handler),
            methods=[route.method],
            response_model=route.answer if is_json else None,
            status_code=route.status,
            responses={
                **{code: {"model": ErrorBody, "description": _SENTENCES[code]} for code in refusals},
                **({route.status: response} if response else {}),
            },
            response_class=JSONResponse if is_json else Response,
            operation_id=name,
            description=route.doc,
            tags=[route.tag],
            openapi_extra={"requestBody": {"required": True, "content": _BYTES}} if route.body is bytes else None,
        )
    return tuple(router.routes)


def _endpoint(route: Route[Any, Any], handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler whose answer is a response. (FastAPI would validate it, and refuse not-a-numbers.)"""

    async def answer_later(**parameters: Any) -> Response:
        return respond(await handler(**parameters), route.status)

    def answer(**parameters: Any) -> Response:
        return respond(handler(**parameters), route.status)

    endpoint = wraps(handler)(answer_later if inspect.iscoroutinefunction(handler) else answer)
    # FastAPI reads the parameters here: the names of their types are those of the handler's module.
    endpoint.__signature__ = inspect.signature(handler, eval_str=True)  # type: ignore[attr-defined]
    return endpoint
