"""The model registry."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from det_native.master.api.answers import LARGEST, TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.store import registry as store
from det_native.schema import registry, routes

Name = Annotated[str, Path(min_length=1, max_length=200, description="Name of a model.")]
Number = Annotated[int, Path(ge=1, le=LARGEST, description="Number of a version.")]


@serve(routes.CREATE_MODEL)
def create_model(body: registry.ModelCreate, service: TheService, owner: TheOwner) -> registry.Model:
    with service.database.write() as transaction:
        return store.create(transaction, owner, body)


@serve(routes.LIST_MODELS)
def list_models(
    service: TheService,
    owner: TheOwner,
    sort_by: registry.ModelSortBy = registry.ModelSortBy.NAME,
    order_by: registry.ModelOrderBy = registry.ModelOrderBy.ASCENDING,
    name: Annotated[str, Query(max_length=200, description="Text that the name has in it.")] = "",
    description: Annotated[str, Query(max_length=1000, description="Text that the description has in it.")] = "",
    label: Annotated[str, Query(max_length=200, description="A label that they have.")] = "",
    archived: Annotated[bool | None, Query(description="Only those that are archived, or only the others.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Leave out so many of the first ones.")] = 0,
) -> list[registry.Model]:
    with service.database.read() as connection:
        return store.listing(
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


@serve(routes.GET_MODEL)
def get_model(name: Name, service: TheService, owner: TheOwner) -> registry.Model:
    with service.database.read() as connection:
        return store.get(connection, name, owner)


@serve(routes.CHANGE_MODEL)
def change_model(name: Name, body: registry.ModelChange, service: TheService, owner: TheOwner) -> registry.Model:
    with service.database.write() as transaction:
        return store.change(transaction, name, owner, body)


@serve(routes.DELETE_MODEL)
def delete_model(
    name: Name,
    service: TheService,
    owner: TheOwner,
    versions: Annotated[bool, Query(description="Its versions go, too; their checkpoints are as all others then.")] = (
        False
    ),
) -> None:
    with service.database.write() as transaction:
        freed = store.remove(transaction, name, owner, versions=versions)
    for experiment_id in freed:
        service.not_needed_any_more(experiment_id)


@serve(routes.REGISTER_VERSION)
def register_version(
    name: Name, body: registry.VersionCreate, service: TheService, owner: TheOwner
) -> registry.ModelVersion:
    with service.database.write() as transaction:
        return store.register(transaction, name, owner, body)


@serve(routes.LIST_VERSIONS)
def list_versions(
    name: Name, service: TheService, owner: TheOwner, order_by: registry.ModelOrderBy = registry.ModelOrderBy.DESCENDING
) -> list[registry.ModelVersion]:
    with service.database.read() as connection:
        return store.versions(connection, name, owner, order_by)


@serve(routes.GET_VERSION)
def get_version(name: Name, version: Number, service: TheService, owner: TheOwner) -> registry.ModelVersion:
    with service.database.read() as connection:
        return store.get_version(connection, name, owner, version)


@serve(routes.CHANGE_VERSION)
def change_version(
    name: Name, version: Number, body: registry.VersionChange, service: TheService, owner: TheOwner
) -> registry.ModelVersion:
    with service.database.write() as transaction:
        return store.change_version(transaction, name, owner, version, body)


@serve(routes.DELETE_VERSION)
def delete_version(name: Name, version: Number, service: TheService, owner: TheOwner) -> None:
    with service.database.write() as transaction:
        freed = store.remove_version(transaction, name, owner, version)
    service.not_needed_any_more(freed)
