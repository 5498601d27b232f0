"""Who trains, and who waits for what."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.queue import Queue

Limit = Annotated[int, Query(ge=1, le=1000)]


@serve(routes.GET_QUEUE)
def get_queue(service: TheService, limit: Limit = 500) -> Queue:
    return service.queue(limit)
