"""The model registry."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from det_native.master.api.answers import LARGEST, TheOwner, TheService, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.master.store import registry as store
from det_native.schema.registry import (
    Model,
    ModelChange,
    ModelCreate,
    ModelOrderBy,
    ModelSortBy,
    ModelVersion,
    VersionChange,
    VersionCreate,
)

router = APIRouter(route_class=Route, prefix="/models", tags=["models"])

Name = Annotated[str, Path(min_length=1, max_length=200, description="Name of a model.")]
Number = Annotated[int, Path(ge=1, le=LARGEST, description="Number of a version.")]


@router.post("", response_model=Model, status_code=201, responses=refusals(400, 409))
def create_model(body: ModelCreate, service: TheService, owner: TheOwner) -> Response:
    """Add a model to the registry."""
    with service.database.write() as transaction:
        return reply(store.create(transaction, owner, body), 201)


@router.get("", response_model=list[Model], responses=refusals(400))
def list_models(
    service: TheService,
    owner: TheOwner,
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
    name: Annotated[str, Query(max_length=200, description="Text that the name has in it.")] = "",
    description: Annotated[str, Query(max_length=1000, description="Text that the description has in it.")] = "",
    label: Annotated[str, Query(max_length=200, description="A label that they have.")] = "",
    archived: Annotated[bool | None, Query(description="Only those that are archived, or only the others.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Leave out so many of the first ones.")] = 0,
) -> Response:
    """Return models."""
    with service.database.read() as connection:
        found = store.listing(
            connection,
            owner,
            sort_by=sort_by,
            order_by=order_by,
            name=name,
            description=description,
            label=label,
            archived=archived,
            limit=limit,
            offset=offset,
        )
    return reply_list(found)


@router.get("/{name}", response_model=Model, responses=refusals(400, 404))
def get_model(name: Name, service: TheService, owner: TheOwner) -> Response:
    """Return a model."""
    with service.database.read() as connection:
        return reply(store.get(connection, name, owner))


@router.patch("/{name}", response_model=Model, responses=refusals(400, 404, 409))
def change_model(name: Name, body: ModelChange, service: TheService, owner: TheOwner) -> Response:
    """Change a model."""
    with service.database.write() as transaction:
        return reply(store.change(transaction, name, owner, body))


@router.delete("/{name}", status_code=204, response_class=Response, responses=refusals(400, 404, 409))
def delete_model(
    name: Name,
    service: TheService,
    owner: TheOwner,
    versions: Annotated[bool, Query(description="Its versions go, too; their checkpoints are as all others then.")] = (
        False
    ),
) -> Response:
    """Delete a model."""
    with service.database.write() as transaction:
        freed = store.remove(transaction, name, owner, versions=versions)
    for experiment_id in freed:
        service.not_needed_any_more(experiment_id)
    return Response(status_code=204)


@router.post("/{name}/versions", response_model=ModelVersion, status_code=201, responses=refusals(400, 404, 409))
def register_version(name: Name, body: VersionCreate, service: TheService, owner: TheOwner) -> Response:
    """Make a checkpoint the next version of a model. It is not collected then."""
    with service.database.write() as transaction:
        return reply(store.register(transaction, name, owner, body), 201)


@router.get("/{name}/versions", response_model=list[ModelVersion], responses=refusals(400, 404))
def list_versions(
    name: Name, service: TheService, owner: TheOwner, order_by: ModelOrderBy = ModelOrderBy.DESCENDING
) -> Response:
    """Return the versions of a model, newest first by default."""
    with service.database.read() as connection:
        return reply_list(store.versions(connection, name, owner, order_by))


@router.get("/{name}/versions/{version}", response_model=ModelVersion, responses=refusals(400, 404))
def get_version(name: Name, version: Number, service: TheService, owner: TheOwner) -> Response:
    """Return a version of a model."""
    with service.database.read() as connection:
        return reply(store.get_version(connection, name, owner, version))


@router.patch("/{name}/versions/{version}", response_model=ModelVersion, responses=refusals(400, 404))
def change_version(name: Name, version: Number, body: VersionChange, service: TheService, owner: TheOwner) -> Response:
    """Change a version of a model: its stage, say."""
    with service.database.write() as transaction:
        return reply(store.change_version(transaction, name, owner, version, body))


@router.delete("/{name}/versions/{version}", status_code=204, response_class=Response, responses=refusals(400, 404))
def delete_version(name: Name, version: Number, service: TheService, owner: TheOwner) -> Response:
    """Delete a version of a model; its checkpoint is as all others then."""
    with service.database.write() as transaction:
        freed = store.remove_version(transaction, name, owner, version)
    service.not_needed_any_more(freed)
    return Response(status_code=204)
