"""Notebooks that run on the master's machine: their runs, and schedules that begin them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from det_native.master.api.answers import LARGEST, TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.notebook_runs import NotebookRun
from det_native.schema.schedules import Schedule, ScheduleCreate

ScheduleId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of a schedule.")]
RunNumber = Annotated[int, Path(ge=1, le=LARGEST, description="Number of a run.")]
WithEnded = Annotated[bool, Query(alias="all", description="Also those that submit nothing more.")]


@serve(routes.LIST_NOTEBOOK_RUNS)
def list_notebook_runs(service: TheService) -> list[NotebookRun]:
    return service.notebook_runs.listing()


@serve(routes.STOP_NOTEBOOK_RUN)
def stop_notebook_run(number: RunNumber, service: TheService) -> NotebookRun:
    return service.notebook_runs.stop(number)


@serve(routes.GET_RUN_NOTEBOOK)
def get_run_notebook(number: RunNumber, service: TheService) -> Response:
    return Response(service.notebook_runs.executed(number), media_type="application/x-ipynb+json")


@serve(routes.CREATE_SCHEDULE)
def create_schedule(body: ScheduleCreate, service: TheService) -> Schedule:
    with service.deletions.storing:  # else the bundle could go with an experiment at this moment
        return service.schedules.create(body)


@serve(routes.LIST_SCHEDULES)
def list_schedules(service: TheService, ended: WithEnded = False) -> list[Schedule]:
    return service.schedules.listing(ended=ended)


@serve(routes.GET_SCHEDULE)
def get_schedule(schedule_id: ScheduleId, service: TheService) -> Schedule:
    return service.schedules.get(schedule_id)


@serve(routes.CANCEL_SCHEDULE)
def cancel_schedule(schedule_id: ScheduleId, service: TheService) -> Schedule:
    return service.schedules.cancel(schedule_id)


@serve(routes.PAUSE_SCHEDULE)
def pause_schedule(schedule_id: ScheduleId, service: TheService) -> Schedule:
    return service.schedules.pause(schedule_id)


@serve(routes.RESUME_SCHEDULE)
def resume_schedule(schedule_id: ScheduleId, service: TheService) -> Schedule:
    return service.schedules.resume(schedule_id)
