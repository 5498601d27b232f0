"""What takes the disk, what is kept for how long, and what may go."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.space import CleanDone, CleanWanted, Space, SpaceSettings

MaxAge = Annotated[float, Query(ge=0, le=86_400, description="Seconds ago that it may have been measured.")]


@serve(routes.GET_SPACE)
def get_space(service: TheService, max_age: MaxAge = 0.0) -> Space:
    return service.space.space(max_age)


@serve(routes.GET_SPACE_SETTINGS)
def get_space_settings(service: TheService) -> SpaceSettings:
    return service.space.settings()


@serve(routes.PUT_SPACE_SETTINGS)
def put_space_settings(body: SpaceSettings, service: TheService) -> SpaceSettings:
    service.space.change(body)
    return service.space.settings()


@serve(routes.CLEAN_SPACE)
def clean_space(body: CleanWanted, service: TheService) -> CleanDone:
    return service.space.cleaner.clean(body)
