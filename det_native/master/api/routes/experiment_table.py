"""What a table of experiments needs: all ids in order, rows, groups, names for queries, and views that were saved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Query

from det_native.errors import NotFoundError
from det_native.master.api.answers import LARGEST, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.store import experiment_rows, finding, grouping
from det_native.schema import routes
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


@serve(routes.LIST_EXPERIMENT_IDS)
def list_experiment_ids(
    service: TheService,
    owner: TheOwner,
    filters: TheFilters,
    order_by: OrderBy = None,
    rows: Annotated[int, Query(ge=0, le=MOST_ROWS, description="With the first so many rows.")] = 0,
    hparams: Hparams = False,
    metric: Metrics = None,
) -> ExperimentList:
    tree, order = filters.tree(), NEWEST if order_by is None else parse_order(order_by)
    with service.database.read() as connection:
        ordered = finding.in_order(connection, owner, tree, datetime.now(UTC), order=order, limit=MOST_IDS)
        shown = experiment_rows.rows_of(
            connection, owner, ordered.ids[:rows], hparams=hparams, metrics=set(metric or ()), told=service.as_told
        )
    return ExperimentList(ids=ordered.ids, total=ordered.total, notice=ordered.notice, rows=shown)


@serve(routes.LIST_EXPERIMENT_ROWS)
def list_experiment_rows(
    service: TheService,
    owner: TheOwner,
    id: Annotated[list[int], Query(min_length=1, max_length=MOST_ROWS)],
    hparams: Hparams = False,
    metric: Metrics = None,
) -> list[ExperimentRow]:
    ids = [number for number in dict.fromkeys(id) if 0 < number <= LARGEST]
    with service.database.read() as connection:
        rows = experiment_rows.rows_of(
            connection, owner, ids, hparams=hparams, metrics=set(metric or ()), told=service.as_told
        )
    return rows


@serve(routes.LIST_EXPERIMENT_GROUPS)
def list_experiment_groups(
    service: TheService,
    owner: TheOwner,
    filters: TheFilters,
    by: Annotated[str, Query(max_length=1000, description="name, project, framework, label or hp:<name>.")],
    measure: Annotated[
        str | None, Query(max_length=1000, description="Each group has the mean of this: metric:<name> or duration.")
    ] = None,
) -> ExperimentGroups:
    tree, order = filters.tree(), None if measure is None else parse_order(measure)
    with service.database.read() as connection:
        return grouping.groups(connection, owner, tree, datetime.now(UTC), by=by, measure=order)


@serve(routes.LIST_EXPERIMENT_NAMES)
def list_experiment_names(service: TheService, owner: TheOwner) -> ExperimentNames:
    with service.database.read() as connection:
        return experiment_rows.names(connection, owner)


@serve(routes.LIST_EXPERIMENT_VIEWS)
def list_experiment_views(service: TheService, owner: TheOwner) -> list[ExperimentView]:
    with service.database.read() as connection:
        return experiment_rows.views(connection, owner)


@serve(routes.SAVE_EXPERIMENT_VIEW)
def save_experiment_view(body: ExperimentViewBody, service: TheService, owner: TheOwner) -> list[ExperimentView]:
    with service.database.write() as transaction:
        experiment_rows.save_view(transaction, owner, body.name, body.parameters)
        return experiment_rows.views(transaction.connection, owner)


@serve(routes.DELETE_EXPERIMENT_VIEW)
def delete_experiment_view(name: ViewName, service: TheService, owner: TheOwner) -> list[ExperimentView]:
    with service.database.write() as transaction:
        if not experiment_rows.remove_view(transaction, owner, name):
            raise NotFoundError(f"The master has no saved view {name!r}.")
        return experiment_rows.views(transaction.connection, owner)
