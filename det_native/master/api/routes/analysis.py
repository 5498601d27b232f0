"""What the trials of a search say about its hyperparameters."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from det_native.master.api.answers import ExperimentId, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.importances import Importances
from det_native.schema import routes
from det_native.schema.importance import Importance

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
