"""What a table of experiments needs: all ids in order, rows, groups, names for queries, and views that were saved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from det_native.errors import NotFoundError
from det_native.master.api.answers import LARGEST, TheOwner, TheService, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.master.store import experiment_rows, finding, grouping
from det_native.schema.experiment_table import (
    LONGEST_VIEW_NAME,
    ExperimentGroups,
    ExperimentList,
    ExperimentNames,
    ExperimentRow,
    ExperimentView,
    ExperimentViewBody,
)
from det_native.schema.query.filters import Filters
from det_native.schema.query.ordering import NEWEST, parse_order

#: So many ids are told; of more, the number.
MOST_IDS = 50_000
MOST_ROWS = 500

router = APIRouter(route_class=Route, tags=["experiments"])


def _filters(
    query: Annotated[str | None, Query(description="What they are to be, as for `GET /experiments`.")] = None,
    state: Annotated[str | None, Query(max_length=100, description="In this state, by either name.")] = None,
    label: Annotated[list[str] | None, Query(max_length=100, description="With all these labels.")] = None,
    project: Annotated[str | None, Query(max_length=1000, description="In this project or a folder of it.")] = None,
    since: Annotated[str | None, Query(max_length=100, description="Created then or later: a date or an age.")] = None,
    archived: Annotated[bool, Query(description="Archived ones, too.")] = False,
) -> Filters:
    return Filters(query, state, None, tuple(label or ()), project, None, since, archived)


TheFilters = Annotated[Filters, Depends(_filters)]
OrderBy = Annotated[str | None, Query(max_length=1000, description="As for `GET /experiments`.")]
Hparams = Annotated[bool, Query(description="Rows with the hyperparameters of the best trial.")]
Metrics = Annotated[list[str] | None, Query(max_length=200, description="Rows with these metrics of the best trial.")]
ViewName = Annotated[str, Query(min_length=1, max_length=LONGEST_VIEW_NAME, description="Name of a view.")]


@router.get("/experiment-list", response_model=ExperimentList, responses=refusals(400))
def list_experiment_ids(
    service: TheService,
    owner: TheOwner,
    filters: TheFilters,
    order_by: OrderBy = None,
    rows: Annotated[int, Query(ge=0, le=MOST_ROWS, description="With the first so many rows.")] = 0,
    hparams: Hparams = False,
    metric: Metrics = None,
) -> Response:
    """Return the ids of all experiments that a query holds for, in order, and the first of their rows."""
    tree, order = filters.tree(), NEWEST if order_by is None else parse_order(order_by)
    with service.database.read() as connection:
        ordered = finding.in_order(connection, owner, tree, datetime.now(UTC), order=order, limit=MOST_IDS)
        shown = experiment_rows.rows_of(
            connection, owner, ordered.ids[:rows], hparams=hparams, metrics=set(metric or ()), told=service.as_told
        )
    return reply(ExperimentList(ids=ordered.ids, total=ordered.total, notice=ordered.notice, rows=shown))


@router.get("/experiment-rows", response_model=list[ExperimentRow], responses=refusals())
def list_experiment_rows(
    service: TheService,
    owner: TheOwner,
    id: Annotated[list[int], Query(min_length=1, max_length=MOST_ROWS)],
    hparams: Hparams = False,
    metric: Metrics = None,
) -> Response:
    """Return rows of these experiments; those that are gone are left out."""
    ids = [number for number in dict.fromkeys(id) if 0 < number <= LARGEST]
    with service.database.read() as connection:
        rows = experiment_rows.rows_of(
            connection, owner, ids, hparams=hparams, metrics=set(metric or ()), told=service.as_told
        )
    return reply_list(rows)


@router.get("/experiment-groups", response_model=ExperimentGroups, responses=refusals(400))
def list_experiment_groups(
    service: TheService,
    owner: TheOwner,
    filters: TheFilters,
    by: Annotated[str, Query(max_length=1000, description="name, project, framework, label or hp:<name>.")],
    measure: Annotated[
        str | None, Query(max_length=1000, description="Each group has the mean of this: metric:<name> or duration.")
    ] = None,
) -> Response:
    """Return groups of the experiments that a query holds for, with mean, deviation and the best of a measure."""
    tree, order = filters.tree(), None if measure is None else parse_order(measure)
    with service.database.read() as connection:
        return reply(grouping.groups(connection, owner, tree, datetime.now(UTC), by=by, measure=order))


@router.get("/experiment-names", response_model=ExperimentNames, responses=refusals())
def list_experiment_names(service: TheService, owner: TheOwner) -> Response:
    """Return what a query may name: metrics, hyperparameters, labels, projects, with how many experiments have it."""
    with service.database.read() as connection:
        return reply(experiment_rows.names(connection, owner))


@router.get("/experiment-views", response_model=list[ExperimentView], responses=refusals())
def list_experiment_views(service: TheService, owner: TheOwner) -> Response:
    """Return the views of the table of experiments that were saved, by name."""
    with service.database.read() as connection:
        return reply_list(experiment_rows.views(connection, owner))


@router.put("/experiment-views", response_model=list[ExperimentView], responses=refusals())
def save_experiment_view(body: ExperimentViewBody, service: TheService, owner: TheOwner) -> Response:
    """Save a view in the place of one of the same name; return all views."""
    with service.database.write() as transaction:
        experiment_rows.save_view(transaction, owner, body.name, body.parameters)
        return reply_list(experiment_rows.views(transaction.connection, owner))


@router.delete("/experiment-views", response_model=list[ExperimentView], responses=refusals(404))
def delete_experiment_view(name: ViewName, service: TheService, owner: TheOwner) -> Response:
    """Delete a view; return those that are left."""
    with service.database.write() as transaction:
        if not experiment_rows.remove_view(transaction, owner, name):
            raise NotFoundError(f"The master has no saved view {name!r}.")
        return reply_list(experiment_rows.views(transaction.connection, owner))
