"""The master itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply
from det_native.schema.rest import Health, MasterInfo

router = APIRouter(tags=["master"])


@router.get("/health", response_model=Health, responses=refusals())
def get_health(service: TheService) -> Response:
    """Say that the master lives. The one public route."""
    return reply(service.health())


@router.get("/master", response_model=MasterInfo, responses=refusals())
def get_master(service: TheService) -> Response:
    """Say who the master is and what it has."""
    return reply(service.info())


@router.post("/master/shutdown", response_model=Health, status_code=202, responses=refusals())
def shut_down(
    service: TheService,
    kill: Annotated[bool, Query(description="End the workers too; they live on otherwise.")] = False,
) -> Response:
    """End the master."""
    answer = reply(service.health(), 202)
    service.shutdown(kill_workers=kill)
    return answer
