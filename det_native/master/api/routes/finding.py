"""Experiments found by what is known of them, and what is known of their trials without reading rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from det_native.master.api.answers import LARGEST, TheOwner, TheService, respond
from det_native.master.api.serving import serve
from det_native.master.store import finding, summaries
from det_native.schema import routes
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import NEWEST, parse_order
from det_native.schema.routes import NEXT, NOTICE, TOTAL
from det_native.schema.summaries import TrialSummary

_HEADERS = {
    TOTAL: {"description": "How many experiments there are, on all pages.", "schema": {"type": "integer"}},
    NEXT: {"description": "The `after` of the next page; missing at the end.", "schema": {"type": "string"}},
    NOTICE: {"description": "What else is to be known of the answer.", "schema": {"type": "string"}},
}


@serve(routes.LIST_EXPERIMENTS, headers=_HEADERS)
def list_experiments(
    service: TheService,
    owner: TheOwner,
    query: Annotated[
        str | None, Query(description="What they are to be, such as `val_loss < 0.3 and label:baseline`.")
    ] = None,
    state: Annotated[str | None, Query(max_length=100, description="In this state, by either name.")] = None,
    name: Annotated[str | None, Query(max_length=1000, description="With this in the name.")] = None,
    label: Annotated[list[str] | None, Query(max_length=100, description="With all these labels.")] = None,
    project: Annotated[str | None, Query(max_length=1000, description="In this project or a folder of it.")] = None,
    metric: Annotated[str | None, Query(max_length=500, description="With a value of this metric.")] = None,
    since: Annotated[str | None, Query(max_length=100, description="Created then or later: a date or an age.")] = None,
    archived: Annotated[bool, Query(description="Archived ones, too.")] = False,
    order_by: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="id, name, created, duration, best, project, metric:<name> or hp:<name>; with asc or desc.",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=LARGEST, description="Only those with a smaller id.")] = None,
    after: Annotated[str | None, Query(max_length=2000, description="The X-Next of the page before.")] = None,
) -> Response:
    filters = Filters(query, state, name, tuple(label or ()), project, metric, since, archived)
    tree, order = filters.tree(), NEWEST if order_by is None else parse_order(order_by)
    with service.database.read() as connection:
        now = datetime.now(UTC)
        page = finding.find(connection, owner, tree, now, order=order, limit=limit, before=before, after=after)
    answer = respond([service.as_told(experiment) for experiment in page.experiments])
    answer.headers[TOTAL] = str(page.total)
    for header, text in ((NEXT, page.next), (NOTICE, page.notice)):
        if text:
            answer.headers[header] = text.encode("ascii", "replace").decode()
    return answer


@serve(routes.LIST_TRIAL_SUMMARIES)
def list_trial_summaries(
    service: TheService,
    owner: TheOwner,
    experiment_id: Annotated[list[int], Query(min_length=1, max_length=1000)],
    best: Annotated[bool, Query(description="Of the best trial of each experiment only.")] = False,
) -> list[TrialSummary]:
    ids = [each for each in experiment_id if 0 < each <= LARGEST]
    with service.database.read() as connection:
        return summaries.of_experiments(connection, owner, ids, best=best)
