"""The model registry: named models, and checkpoints that are their versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, select, update

from det_native.errors import NotFoundError, RequestError
from det_native.master.store import checkpoints
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import check_text, now
from det_native.master.store.user_tables import model_versions, models
from det_native.schema import registry
from det_native.schema.states import CheckpointState

_SORTED: dict[registry.ModelSortBy, ColumnElement[Any]] = {
    registry.ModelSortBy.UNSPECIFIED: models.c.id,
    registry.ModelSortBy.NAME: models.c.name,
    registry.ModelSortBy.DESCRIPTION: models.c.description,
    registry.ModelSortBy.CREATION_TIME: models.c.created,
    registry.ModelSortBy.LAST_UPDATED_TIME: models.c.updated,
    registry.ModelSortBy.NUM_VERSIONS: (
        select(func.count()).where(model_versions.c.model_id == models.c.id).correlate(models).scalar_subquery()
    ),
}


def create(transaction: Transaction, owner: str, body: registry.ModelCreate) -> registry.Model:
    """Add a model.

    Raises
    ------
    RequestError
        If the owner has one of that name.
    """
    check_text(body.model_dump(mode="json"))
    _refuse_taken(transaction.connection, owner, body.name)
    time = now()
    values = body.model_dump() | {"labels": _unique(body.labels)}
    transaction.connection.execute(insert(models).values(owner=owner, created=time, updated=time, **values))
    return get(transaction.connection, body.name, owner)


def get(connection: Connection, name: str, owner: str) -> registry.Model:
    """Return a model.

    Raises
    ------
    NotFoundError
        If the owner has none of that name.
    """
    return _model(connection, _row(connection, name, owner))


def listing(
    connection: Connection,
    owner: str,
    *,
    sort_by: registry.ModelSortBy = registry.ModelSortBy.NAME,
    order_by: registry.ModelOrderBy = registry.ModelOrderBy.ASCENDING,
    name: str = "",
    description: str = "",
    label: str = "",
    archived: bool | None = None,
    limit: int = 1000,
    offset: int = 0,
) -> list[registry.Model]:
    """Return models whose name and description have these texts in them, whatever the case of letters."""
    query = select(models).where(models.c.owner == owner)
    for column, text in ((models.c.name, name), (models.c.description, description)):
        if text:
            query = query.where(func.lower(column).contains(text.lower(), autoescape=True))
    if archived is not None:
        query = query.where(models.c.archived == archived)
    sorted_by = _SORTED[sort_by]
    down = order_by is registry.ModelOrderBy.DESCENDING
    query = query.order_by(sorted_by.desc() if down else sorted_by, models.c.id.desc() if down else models.c.id)
    if not label:
        query = query.limit(limit).offset(offset)
    rows = [row for row in connection.execute(query).all() if not label or label in row.labels]
    if label:
        rows = rows[offset : offset + limit]
    counts = _counts(connection, [row.id for row in rows])
    return [_model(connection, row, counts) for row in rows]


def change(transaction: Transaction, name: str, owner: str, body: registry.ModelChange) -> registry.Model:
    """Change a model.

    Raises
    ------
    NotFoundError
        If there is none of that name.
    RequestError
        If it would have the name of another one.
    """
    check_text(body.model_dump(mode="json"))
    row = _row(transaction.connection, name, owner)
    values: dict[str, Any] = {
        key: value for key in ("name", "description", "notes", "archived") if (value := getattr(body, key)) is not None
    }
    if values.get("name", name) != name:
        _refuse_taken(transaction.connection, owner, values["name"])
    values |= _tags(row, body)
    transaction.connection.execute(update(models).where(models.c.id == row.id).values(updated=now(), **values))
    return get(transaction.connection, values.get("name", name), owner)


def remove(transaction: Transaction, name: str, owner: str, *, versions: bool) -> list[int]:
    """Delete a model; return the experiments of which a checkpoint is not registered as one of its versions any more.

    Raises
    ------
    NotFoundError
        If there is none of that name.
    RequestError
        If it has versions, unless these are to go, too.
    """
    connection = transaction.connection
    row = _row(connection, name, owner)
    found = connection.execute(select(model_versions.c.uuid).where(model_versions.c.model_id == row.id)).scalars().all()
    if found and not versions:
        count = "a version" if len(found) == 1 else f"{len(found)} versions"
        raise RequestError(
            409, f"The model {name!r} has {count}; delete these first, or archive the model, or say that they go, too."
        )
    connection.execute(delete(model_versions).where(model_versions.c.model_id == row.id))
    connection.execute(delete(models).where(models.c.id == row.id))
    return sorted({checkpoints.get(connection, uuid).experiment_id for uuid in found})


def register(transaction: Transaction, name: str, owner: str, body: registry.VersionCreate) -> registry.ModelVersion:
    """Make a checkpoint the next version of a model.

    Raises
    ------
    NotFoundError
        If the owner has no such model or checkpoint.
    RequestError
        If the model is archived, or the checkpoint is deleted or one of its versions.
    """
    check_text(body.model_dump(mode="json"))
    connection = transaction.connection
    row = _row(connection, name, owner)
    checkpoint = checkpoints.get(connection, body.uuid, owner)
    if row.archived:
        raise RequestError(409, f"The model {name!r} is archived; unarchive it to register versions.")
    if checkpoint.state is not CheckpointState.COMPLETED:
        raise RequestError(409, f"Checkpoint {body.uuid} was deleted; there is nothing to register.")
    known = connection.execute(
        select(model_versions.c.version).where(model_versions.c.model_id == row.id, model_versions.c.uuid == body.uuid)
    ).scalar()
    if known is not None:
        raise RequestError(409, f"Checkpoint {body.uuid} is version {known} of the model {name!r} already.")
    time, version = now(), row.last_version + 1
    values = body.model_dump() | {"labels": _unique(body.labels)}
    connection.execute(
        insert(model_versions).values(model_id=row.id, version=version, created=time, updated=time, **values)
    )
    connection.execute(update(models).where(models.c.id == row.id).values(last_version=version, updated=time))
    return get_version(connection, name, owner, version)


def get_version(connection: Connection, name: str, owner: str, version: int) -> registry.ModelVersion:
    """Return a version of a model.

    Raises
    ------
    NotFoundError
        If there is no such model or version.
    """
    model = _row(connection, name, owner)
    return _version(connection, name, _version_row(connection, model, version))


def versions(
    connection: Connection,
    name: str,
    owner: str,
    order_by: registry.ModelOrderBy = registry.ModelOrderBy.DESCENDING,
) -> list[registry.ModelVersion]:
    """Return the versions of a model, newest first by default."""
    model = _row(connection, name, owner)
    column = model_versions.c.version
    query = select(model_versions).where(model_versions.c.model_id == model.id)
    query = query.order_by(column.desc() if order_by is registry.ModelOrderBy.DESCENDING else column)
    return [_version(connection, name, row) for row in connection.execute(query).all()]


def of_checkpoint(connection: Connection, uuid: str, owner: str) -> list[registry.ModelVersion]:
    """Return the versions that a checkpoint is, oldest first."""
    checkpoints.get(connection, uuid, owner)
    query = (
        select(model_versions, models.c.name.label("model"))
        .join(models, models.c.id == model_versions.c.model_id)
        .where(model_versions.c.uuid == uuid, models.c.owner == owner)
        .order_by(model_versions.c.created, models.c.name, model_versions.c.version)
    )
    return [_version(connection, row.model, row) for row in connection.execute(query).all()]


def change_version(
    transaction: Transaction, name: str, owner: str, version: int, body: registry.VersionChange
) -> registry.ModelVersion:
    """Change a version of a model.

    Raises
    ------
    NotFoundError
        If there is no such model or version.
    """
    check_text(body.model_dump(mode="json"))
    connection = transaction.connection
    model = _row(connection, name, owner)
    row = _version_row(connection, model, version)
    values: dict[str, Any] = {
        key: value for key in ("name", "description", "notes", "stage") if (value := getattr(body, key)) is not None
    }
    values |= _tags(row, body)
    where = (model_versions.c.model_id == model.id, model_versions.c.version == version)
    connection.execute(update(model_versions).where(*where).values(updated=now(), **values))
    return get_version(connection, name, owner, version)


def remove_version(transaction: Transaction, name: str, owner: str, version: int) -> int:
    """Delete a version; return the experiment of its checkpoint, which stays for now. The number is not given again.

    Raises
    ------
    NotFoundError
        If there is no such model or version.
    """
    connection = transaction.connection
    model = _row(connection, name, owner)
    row = _version_row(connection, model, version)
    where = (model_versions.c.model_id == model.id, model_versions.c.version == version)
    connection.execute(delete(model_versions).where(*where))
    connection.execute(update(models).where(models.c.id == model.id).values(updated=now()))
    return checkpoints.get(connection, row.uuid).experiment_id


def merged(metadata: dict[str, Any], add: dict[str, Any], remove: Iterable[str]) -> dict[str, Any]:
    """Return metadata without some keys and with some values."""
    gone = set(remove)
    return {key: value for key, value in metadata.items() if key not in gone} | add


def _tags(row: Row[Any], body: registry.ModelChange | registry.VersionChange) -> dict[str, Any]:
    """Return labels and metadata as they will be."""
    values: dict[str, Any] = {}
    if body.labels is not None or body.add_labels or body.remove_labels:
        labels = [*(row.labels if body.labels is None else body.labels), *body.add_labels]
        values["labels"] = _unique(label for label in labels if label not in body.remove_labels)
    if body.add_metadata or body.remove_metadata:
        values["metadata"] = merged(row.metadata, body.add_metadata, body.remove_metadata)
    return values


def _unique(labels: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(labels))


def _refuse_taken(connection: Connection, owner: str, name: str) -> None:
    taken = select(models.c.id).where(models.c.owner == owner, models.c.name == name)
    if connection.execute(taken).first() is not None:
        raise RequestError(409, f"There is a model {name!r} already; give this one another name, or use that one.")


def _row(connection: Connection, name: str, owner: str) -> Row[Any]:
    row = connection.execute(select(models).where(models.c.owner == owner, models.c.name == name)).first()
    if row is None:
        raise NotFoundError(f"There is no model {name!r}.")
    return row


def _version_row(connection: Connection, model: Row[Any], version: int) -> Row[Any]:
    query: Select[Any] = select(model_versions).where(
        model_versions.c.model_id == model.id, model_versions.c.version == version
    )
    row = connection.execute(query).first()
    if row is None:
        deleted = version <= model.last_version and version > 0
        more = " any more: it was deleted." if deleted else "." if model.last_version else " yet; it has none at all."
        raise NotFoundError(f"The model {model.name!r} has no version {version}{more}")
    return row


def _counts(connection: Connection, ids: list[int]) -> dict[int, tuple[int, int]]:
    """Return how many versions models have, and the newest of them."""
    column = model_versions.c.model_id
    query = select(column, func.count(), func.max(model_versions.c.version)).where(column.in_(ids)).group_by(column)
    return {model: (count, newest) for model, count, newest in connection.execute(query).all()}


def _model(connection: Connection, row: Row[Any], counts: dict[int, tuple[int, int]] | None = None) -> registry.Model:
    count, newest = (_counts(connection, [row.id]) if counts is None else counts).get(row.id, (0, None))
    return registry.Model.model_validate(row._asdict() | {"versions": count, "last_version": newest})


def _version(connection: Connection, model: str, row: Row[Any]) -> registry.ModelVersion:
    known = {"model": model, "checkpoint": checkpoints.get(connection, row.uuid)}
    return registry.ModelVersion.model_validate(row._asdict() | known)
