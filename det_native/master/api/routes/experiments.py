"""Experiments, and what a configuration of one can say, for forms that are made of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
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
    OfPage,
    TheOwner,
    TheService,
    TheShared,
    kinds_of,
    list_json,
    reply_text,
    stretch,
)
from det_native.master.api.serving import serve
from det_native.master.flow.creation import Idempotency
from det_native.master.importances import Importances
from det_native.master.service import Service
from det_native.master.store import checkpoints, experiments, series, trials
from det_native.schema import rest, routes
from det_native.schema.config import ExperimentConfig
from det_native.schema.drawn import drawn, names_to_read
from det_native.schema.forks import closed_to_pages
from det_native.schema.importance import Importance
from det_native.schema.states import MetricKind

Decide = Callable[[Service, str, int], rest.Experiment]


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
        changes = body.resources or rest.ResourcesChange()
        experiment = await asyncio.wrap_future(service.decide(Service.change_experiment, owner, experiment_id, changes))
    if described:
        experiment = await run_in_threadpool(service.describe_experiment, owner, experiment_id, body)
    return experiment


def _decided(
    route: routes.Route[None, rest.Experiment], decide: Callable[[Service, str, int], rest.Experiment]
) -> None:
    """Have a route answered by what the master's thread decides."""

    async def change(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> rest.Experiment:
        return await asyncio.wrap_future(service.decide(decide, owner, experiment_id))

    change.__name__ = decide.__name__
    serve(route)(change)


_decided(routes.KILL_EXPERIMENT, Service.kill_experiment)
_decided(routes.STOP_EXPERIMENT, Service.stop_experiment)
_decided(routes.PAUSE_EXPERIMENT, Service.pause_experiment)
_decided(routes.RESUME_EXPERIMENT, Service.resume_experiment)


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


Metric = Annotated[
    str | None, Query(min_length=1, max_length=1000, description="Of which metric; that of the search by default.")
]


@serve(routes.GET_IMPORTANCE)
async def get_importance(
    experiment_id: ExperimentId, request: Request, service: TheService, owner: TheOwner, metric: Metric = None
) -> Importance:
    state = request.app.state
    if not hasattr(state, "importances"):
        state.importances, state.analysing = Importances(service.database), asyncio.Lock()
    async with state.analysing:  # a single thread, however many ask
        importance: Importance = await run_in_threadpool(state.importances.of, experiment_id, metric, owner)
    return importance


@serve(routes.GET_CONFIGURATION_SCHEMA)
def get_configuration_schema(of_page: OfPage) -> Response:
    return reply_text(_schema(of_page))


@cache
def _schema(of_page: bool) -> str:
    """Return the schema as text; a page is told by ``readOnly`` what its session may not change."""
    schema = ExperimentConfig.model_json_schema()
    for name, field in schema["properties"].items() if of_page else ():
        section = schema["$defs"].get(field.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        for path in closed_to_pages({name: section}):
            (field if path == name else section[path.removeprefix(f"{name}.")])["readOnly"] = True
    return json.dumps(schema)
