"""Experiments that are submitted at a time, or again and again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from det_native.master.api.answers import LARGEST, TheService, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.schema.schedules import Schedule, ScheduleCreate

router = APIRouter(route_class=Route, tags=["schedules"])

ScheduleId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of a schedule.")]
WithEnded = Annotated[bool, Query(alias="all", description="Also those that submit nothing more.")]


@router.post("/schedules", response_model=Schedule, status_code=201, responses=refusals(400, 404, 409, 426))
def create_schedule(body: ScheduleCreate, service: TheService) -> Response:
    """Have an experiment submitted at a time, or again and again; it is checked as if it were submitted now."""
    with service.deletions.storing:  # else the bundle could go with an experiment at this moment
        return reply(service.schedules.create(body), 201)


@router.get("/schedules", response_model=list[Schedule], responses=refusals())
def list_schedules(service: TheService, ended: WithEnded = False) -> Response:
    """Return the schedules that submit still, newest first."""
    return reply_list(service.schedules.listing(ended=ended))


@router.get("/schedules/{schedule_id}", response_model=Schedule, responses=refusals(404))
def get_schedule(schedule_id: ScheduleId, service: TheService) -> Response:
    """Return a schedule."""
    return reply(service.schedules.get(schedule_id))


@router.delete("/schedules/{schedule_id}", response_model=Schedule, responses=refusals(404, 409))
def cancel_schedule(schedule_id: ScheduleId, service: TheService) -> Response:
    """Have a schedule submit nothing more; what it has submitted goes on."""
    return reply(service.schedules.cancel(schedule_id))


@router.post("/schedules/{schedule_id}/pause", response_model=Schedule, responses=refusals(404, 409))
def pause_schedule(schedule_id: ScheduleId, service: TheService) -> Response:
    """Have a schedule submit nothing until it is resumed."""
    return reply(service.schedules.pause(schedule_id))


@router.post("/schedules/{schedule_id}/resume", response_model=Schedule, responses=refusals(404, 409))
def resume_schedule(schedule_id: ScheduleId, service: TheService) -> Response:
    """Have a paused schedule submit again."""
    return reply(service.schedules.resume(schedule_id))
