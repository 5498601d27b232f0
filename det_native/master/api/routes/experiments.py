"""Experiments."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from det_native.master.api.answers import (
    LARGEST,
    ExperimentId,
    FirstBatch,
    Key,
    LastBatch,
    TheOwner,
    TheService,
    TheShared,
    kinds_of,
    list_json,
    stretch,
)
from det_native.master.api.serving import serve
from det_native.master.flow.creation import Idempotency
from det_native.master.store import checkpoints, experiments, series, trials
from det_native.schema import rest, routes
from det_native.schema.drawn import drawn, names_to_read
from det_native.schema.states import MetricKind


@serve(routes.CREATE_EXPERIMENT)
def create_experiment(
    body: rest.ExperimentCreate, service: TheService, owner: TheOwner, key: Key = None
) -> rest.Experiment:
    # The report says what was new when it was sent, which a repeat from another process sees otherwise.
    asked = body.model_dump(mode="json", exclude={"report"})
    return service.create_experiment(owner, body, Idempotency.of(key, asked))


@serve(routes.GET_EXPERIMENT)
def get_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.ExperimentDetail:
    with service.database.read() as connection:
        detail = experiments.get_detail(connection, experiment_id, owner)
    return service.as_told(detail.model_copy(update={"devices": service.devices}))


@serve(routes.KEEP_NOTEBOOK)
async def keep_notebook(
    experiment_id: ExperimentId, request: Request, service: TheService, owner: TheOwner
) -> rest.Experiment:
    content = await request.body()
    return await run_in_threadpool(service.notebooks.keep, owner, experiment_id, content)


@serve(routes.GET_NOTEBOOK)
def get_notebook(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    content = service.notebooks.get(owner, experiment_id)
    name = f"experiment-{experiment_id}.ipynb"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/x-ipynb+json", headers=headers)


@serve(routes.CHANGE_EXPERIMENT)
async def change_experiment(
    experiment_id: ExperimentId, body: rest.ExperimentChange, service: TheService, owner: TheOwner
) -> rest.Experiment:
    described = body.model_fields_set - {"resources"}
    if body.resources is not None or not described:
        experiment = await asyncio.wrap_future(
            service.change_experiment(owner, experiment_id, body.resources or rest.ResourcesChange())
        )
    if described:
        experiment = await run_in_threadpool(service.describe_experiment, owner, experiment_id, body)
    return experiment


@serve(routes.KILL_EXPERIMENT)
async def kill_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.Experiment:
    return await asyncio.wrap_future(service.kill_experiment(owner, experiment_id))


@serve(routes.CANCEL_EXPERIMENT)
@serve(routes.STOP_EXPERIMENT)
async def stop_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.Experiment:
    return await asyncio.wrap_future(service.stop_experiment(owner, experiment_id))


@serve(routes.PAUSE_EXPERIMENT)
async def pause_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.Experiment:
    return await asyncio.wrap_future(service.pause_experiment(owner, experiment_id))


@serve(routes.ACTIVATE_EXPERIMENT)
@serve(routes.RESUME_EXPERIMENT)
async def resume_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.Experiment:
    return await asyncio.wrap_future(service.resume_experiment(owner, experiment_id))


@serve(routes.GET_EXPERIMENT_CURVES)
async def get_experiment_curves(
    experiment_id: ExperimentId,
    service: TheService,
    shared: TheShared,
    owner: TheOwner,
    metric: Annotated[str | None, Query(min_length=1, max_length=1000, description="Only this metric.")] = None,
    kind: Annotated[MetricKind | None, Query(description="What the metrics measure; both kinds by default.")] = None,
    newest: Annotated[int, Query(ge=1, le=1000, alias="trials", description="Of how many trials at most.")] = 50,
    buckets: Annotated[int, Query(ge=1, le=10_000)] = 500,
    only: Annotated[list[int] | None, Query(description="Of these trials alone; may be given often.")] = None,
    first: FirstBatch = 0,
    last: LastBatch = LARGEST,
) -> Response:
    within = stretch(first, last)
    chosen = None if only is None else tuple(only)

    def read() -> bytes:
        with service.database.read() as connection:
            experiment = experiments.get(connection, experiment_id, owner)
            shown = trials.chosen(connection, experiment, newest, chosen)
            names = [None] if metric is None else names_to_read(metric, experiment.framework)
            found = [
                curve
                for name in names
                for curve in series.curves_of_many(
                    connection, shown, kinds_of(kind), points=buckets, name=name, within=within
                )
            ]
        return list_json(drawn(found, experiment.framework, validates=experiment.validates)).encode()

    asked = ("curves of trials", owner, experiment_id, metric, kind, newest, buckets, chosen, within)
    return await shared.answer(asked, read)


@serve(routes.LIST_TRIALS)
def list_trials(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> list[rest.Trial]:
    with service.database.read() as connection:
        experiments.get(connection, experiment_id, owner)
        return trials.of_experiment(connection, experiment_id, owner)


@serve(routes.LIST_CHECKPOINTS)
def list_checkpoints(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> list[rest.Checkpoint]:
    with service.database.read() as connection:
        experiments.get(connection, experiment_id, owner)
        return checkpoints.of_experiment(connection, experiment_id, owner)
