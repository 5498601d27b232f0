"""What the trials of a search say about its hyperparameters."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from det_native.master.api.answers import ExperimentId, TheOwner, TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.master.importances import Importances
from det_native.schema.importance import Importance

router = APIRouter(route_class=Route, prefix="/experiments", tags=["experiments"])

Metric = Annotated[
    str | None, Query(min_length=1, max_length=1000, description="Of which metric; that of the search by default.")
]


@router.get("/{experiment_id}/importance", response_model=Importance, responses=refusals(404))
async def get_importance(
    experiment_id: ExperimentId, request: Request, service: TheService, owner: TheOwner, metric: Metric = None
) -> Response:
    """Return how much each hyperparameter explains of a metric, over the trials that have ended."""
    state = request.app.state
    if not hasattr(state, "importances"):
        state.importances, state.analysing = Importances(service.database), asyncio.Lock()
    async with state.analysing:  # a single thread, however many ask
        importance = await run_in_threadpool(state.importances.of, experiment_id, metric, owner)
    return reply(importance)
