"""Who trains, and who waits for what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.schema.queue import Queue

router = APIRouter(route_class=Route, tags=["queue"])

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/queue", response_model=Queue, responses=refusals())
def get_queue(service: TheService, limit: Limit = 500) -> Response:
    """Return the experiments that have not ended, in the order of the scheduler."""
    return reply(service.queue(limit))
