"""Experiments."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from det_native.master.api.answers import (
    LARGEST,
    ExperimentId,
    FirstBatch,
    LastBatch,
    TheOwner,
    TheService,
    TheShared,
    kinds_of,
    list_json,
    refusals,
    reply,
    reply_list,
    stretch,
)
from det_native.master.api.bodies import Route
from det_native.master.flow.creation import Idempotency
from det_native.master.store import checkpoints, experiments, series, trials
from det_native.schema.drawn import drawn, names_to_read
from det_native.schema.rest import (
    BundleChecked,
    Checkpoint,
    Experiment,
    ExperimentChange,
    ExperimentCreate,
    ExperimentDetail,
    MetricCurve,
    ResourcesChange,
    Trial,
)
from det_native.schema.states import MetricKind

router = APIRouter(route_class=Route, prefix="/experiments", tags=["experiments"])

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


@router.post("", response_model=Experiment, status_code=201, responses=refusals(400, 404, 409, 426))
def create_experiment(body: ExperimentCreate, service: TheService, owner: TheOwner, key: Key = None) -> Response:
    """Create an experiment and begin it. A repeat with the same Idempotency-Key returns the first one."""
    idempotency = None
    if key is not None:
        # The report says what was new when it was sent, which a repeat from another process sees otherwise.
        text = json.dumps(body.model_dump(mode="json", exclude={"report"}), sort_keys=True)
        idempotency = Idempotency(key, hashlib.sha256(text.encode()).hexdigest())
    return reply(service.create_experiment(owner, body, idempotency), 201)


@router.get("/{experiment_id}", response_model=ExperimentDetail, responses=refusals(404))
def get_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Return an experiment with its capture report."""
    with service.database.read() as connection:
        detail = experiments.get_detail(connection, experiment_id, owner)
    return reply(service.as_told(detail.model_copy(update={"devices": service.devices})))


@router.patch("/{experiment_id}", response_model=Experiment, responses=refusals(400, 404, 409))
async def change_experiment(
    experiment_id: ExperimentId, body: ExperimentChange, service: TheService, owner: TheOwner
) -> Response:
    """Change what people write of an experiment; priority, weight or max_slots of one that goes on, for which trials
    may make room, or get some.
    """
    described = body.model_fields_set - {"resources"}
    if body.resources is not None or not described:
        experiment = await asyncio.wrap_future(
            service.change_experiment(owner, experiment_id, body.resources or ResourcesChange())
        )
    if described:
        experiment = await run_in_threadpool(service.describe_experiment, owner, experiment_id, body)
    return reply(experiment)


@router.post("/{experiment_id}/dry-run", response_model=BundleChecked, responses=refusals(404))
async def dry_run_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Run the cells up to the training call in a fresh process, if no trial has started; say what it is given else."""
    checked = await asyncio.wrap_future(service.dry_run(experiment_id, owner))
    return reply(checked)


@router.post("/{experiment_id}/kill", response_model=Experiment, responses=refusals(404))
async def kill_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """End an experiment now, without a checkpoint; its trials become CANCELED."""
    experiment = await asyncio.wrap_future(service.kill_experiment(owner, experiment_id))
    return reply(experiment)


@router.post("/{experiment_id}/stop", response_model=Experiment, responses=refusals(404))
async def stop_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """End an experiment: its workers checkpoint first; its trials become CANCELED."""
    experiment = await asyncio.wrap_future(service.stop_experiment(owner, experiment_id))
    return reply(experiment)


@router.post("/{experiment_id}/pause", response_model=Experiment, responses=refusals(404, 409))
async def pause_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Pause an experiment: its workers checkpoint and end, and nothing starts until it is resumed."""
    experiment = await asyncio.wrap_future(service.pause_experiment(owner, experiment_id))
    return reply(experiment)


@router.post("/{experiment_id}/resume", response_model=Experiment, responses=refusals(404, 409))
async def resume_experiment(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Go on with a paused experiment; its trials continue from their checkpoints."""
    experiment = await asyncio.wrap_future(service.resume_experiment(owner, experiment_id))
    return reply(experiment)


# The names that Determined has for these.
for _older, _endpoint, _refusals in (("activate", resume_experiment, (404, 409)), ("cancel", stop_experiment, (404,))):
    router.add_api_route(
        f"/{{experiment_id}}/{_older}",
        _endpoint,
        methods=["POST"],
        response_model=Experiment,
        responses=refusals(*_refusals),
        operation_id=f"{_older}_experiment",
        deprecated=True,
    )


@router.get("/{experiment_id}/curves", response_model=list[MetricCurve], responses=refusals(404))
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
    """Return the curves of the best trial and the newest ones, each down-sampled to at most `buckets` points.

    Of a stretch of batches the points are the finer, the shorter it is.
    Where there are very many curves (trials times metrics) each has fewer points, so that an answer stays small.
    """

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


@router.get("/{experiment_id}/trials", response_model=list[Trial], responses=refusals(404))
def list_trials(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Return the trials of an experiment, oldest first."""
    with service.database.read() as connection:
        experiments.get(connection, experiment_id, owner)
        return reply_list(trials.of_experiment(connection, experiment_id, owner))


@router.get("/{experiment_id}/checkpoints", response_model=list[Checkpoint], responses=refusals(404))
def list_checkpoints(experiment_id: ExperimentId, service: TheService, owner: TheOwner) -> Response:
    """Return the checkpoints of an experiment by trial and batch, deleted ones included."""
    with service.database.read() as connection:
        experiments.get(connection, experiment_id, owner)
        return reply_list(checkpoints.of_experiment(connection, experiment_id, owner))
