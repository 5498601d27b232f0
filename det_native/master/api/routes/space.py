"""What takes the disk, what is kept for how long, and what may go."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.schema.space import CleanDone, CleanWanted, Space, SpaceSettings

router = APIRouter(route_class=Route, tags=["space"])

MaxAge = Annotated[float, Query(ge=0, le=86_400, description="Seconds ago that it may have been measured.")]


@router.get("/space", response_model=Space, responses=refusals())
def get_space(service: TheService, max_age: MaxAge = 0.0) -> Response:
    """Say what takes the disk, by kind."""
    return reply(service.space.space(max_age))


@router.get("/space/settings", response_model=SpaceSettings, responses=refusals())
def get_space_settings(service: TheService) -> Response:
    """Return the budget and what is kept for how long."""
    return reply(service.space.settings())


@router.put("/space/settings", response_model=SpaceSettings, responses=refusals(400))
def put_space_settings(body: SpaceSettings, service: TheService) -> Response:
    """Change the budget, or what is kept for how long; fields that are left out stay."""
    service.space.change(body)
    return reply(service.space.settings())


@router.post("/space/clean", response_model=CleanDone, responses=refusals(400))
def clean_space(body: CleanWanted, service: TheService) -> Response:
    """Delete what nobody needs of these kinds, or say what would go."""
    return reply(service.space.cleaner.clean(body))
