"""When trials had done how many batches."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from det_native.master.api.answers import ExperimentId, TheOwner, TheService, TheShared, TrialId, list_json
from det_native.master.api.serving import serve
from det_native.master.store import clocks, experiments, trials
from det_native.schema import routes
from det_native.schema.clocks import TrialClock

Points = Annotated[int, Query(ge=2, le=5000, description="At most so many points of each trial.")]


@serve(routes.GET_CLOCK)
def get_clock(trial_id: TrialId, service: TheService, owner: TheOwner, points: Points = 1000) -> TrialClock:
    with service.database.read() as connection:
        trials.get(connection, trial_id, owner)
        (found,) = clocks.read(connection, [trial_id], points=points)
    return found


@serve(routes.GET_CLOCKS)
async def get_clocks(
    experiment_id: ExperimentId,
    service: TheService,
    shared: TheShared,
    owner: TheOwner,
    newest: Annotated[int, Query(ge=1, le=1000, alias="trials", description="Of how many trials at most.")] = 50,
    only: Annotated[list[int] | None, Query(description="Of these trials alone; may be given often.")] = None,
    points: Points = 300,
) -> Response:
    chosen = None if only is None else tuple(only)

    def read() -> bytes:
        with service.database.read() as connection:
            experiment = experiments.get(connection, experiment_id, owner)
            shown = trials.chosen(connection, experiment, newest, chosen)
            return list_json(clocks.read(connection, shown, points=points)).encode()

    return await shared.answer(("clocks of trials", owner, experiment_id, newest, chosen, points), read)
