"""Checkpoints and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError
from det_native.master.api.answers import TheOwner, TheService, Uuid, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.master.api.routes.bundles import BYTES
from det_native.master.flow import kept_checkpoints
from det_native.master.flow.resume import storage_of
from det_native.master.store import checkpoints, experiments, registry
from det_native.schema.downloads import attachment
from det_native.schema.registry import CheckpointChange, CheckpointVerified, ModelVersion
from det_native.schema.rest import Checkpoint
from det_native.schema.states import CheckpointState
from det_native.schema.trial_names import trial_name
from det_native.storage.instead import find_instead

router = APIRouter(route_class=Route, prefix="/checkpoints", tags=["checkpoints"])

CHUNK = 1 << 20


@router.get("/{uuid}", response_model=Checkpoint, responses=refusals(404))
def get_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Return a checkpoint; it may be deleted."""
    with service.database.read() as connection:
        return reply(checkpoints.get(connection, uuid, owner))


@router.get("/{uuid}/instead", response_model=Checkpoint, responses=refusals(404))
def get_checkpoint_instead(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Return the checkpoint of the same trial that is best had instead of a damaged one; its files are verified."""
    with service.database.read() as connection:
        damaged = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, damaged.experiment_id, owner)
        known = checkpoints.of_trial(connection, damaged.trial_id, owner)
    found = find_instead(storage_of(service.places, experiment), damaged, known)
    if found is None:
        raise NotFoundError(
            f"Trial {trial_name(damaged.experiment_id, damaged.shown_trial)} has no other checkpoint that is whole."
        )
    return reply(found)


@router.get("/{uuid}/models", response_model=list[ModelVersion], responses=refusals(404))
def get_versions_of_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Return the versions of models that a checkpoint is."""
    with service.database.read() as connection:
        return reply_list(registry.of_checkpoint(connection, uuid, owner))


@router.patch("/{uuid}", response_model=Checkpoint, responses=refusals(400, 404, 409))
def change_checkpoint(uuid: Uuid, body: CheckpointChange, service: TheService, owner: TheOwner) -> Response:
    """Change what is noted of a checkpoint, and whether it is pinned: a pinned one is never collected."""
    changed = kept_checkpoints.change(service.context, owner, uuid, body)
    if body.pinned is False:
        service.not_needed_any_more(changed.experiment_id)
    return reply(changed)


@router.post("/{uuid}/verify", response_model=CheckpointVerified, responses=refusals(404, 424))
def verify_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Read all files of a checkpoint in its storage, and say whether they are what was saved."""
    with service.database.read() as connection:
        checkpoint = checkpoints.get(connection, uuid, owner)
    return reply(kept_checkpoints.verify(service.context, checkpoint))


@router.delete("/{uuid}", response_model=Checkpoint, responses=refusals(404, 409, 424))
def delete_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Delete a checkpoint, if nothing needs it: neither registered nor pinned, nobody's source, nor of a live trial."""
    return reply(kept_checkpoints.delete(service.context, owner, uuid))


@router.get(
    "/{uuid}/files/{path:path}",
    response_class=Response,
    responses={**refusals(404, 409, 424), 200: {"content": BYTES, "description": "The content."}},
)
def get_checkpoint_file(
    uuid: Uuid,
    path: Annotated[str, Path(min_length=1, description="Path of a file in the manifest.")],
    service: TheService,
    owner: TheOwner,
    offset: Annotated[int, Query(ge=0, description="Bytes that have arrived already.")] = 0,
) -> Response:
    """Return a file of a checkpoint, or what of it is left. Only files that the manifest names exist."""
    with service.database.read() as connection:
        checkpoint = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, checkpoint.experiment_id, owner)
    if checkpoint.state is CheckpointState.DELETED:
        raise NotFoundError(f"Checkpoint {uuid} was deleted.")
    file = next((file for file in checkpoint.manifest.files if file.path == path), None)
    if file is None:
        raise NotFoundError(f"Checkpoint {uuid} has no file {path!r}.")
    service.collector.reads(uuid)
    storage = storage_of(service.places, experiment)
    begin = min(offset, file.size)
    try:
        storage.check(checkpoint.manifest, path)  # once the answer has begun, nothing can be said of it
        stream = storage.open(uuid, path)
        stream.seek(begin)
    except OSError as error:
        raise kept_checkpoints.does_not_answer(storage.uri, error) from error
    return StreamingResponse(
        _chunks(stream, partial(service.collector.reads, uuid)),
        media_type="application/octet-stream",
        headers={"Content-Length": str(file.size - begin), "Content-Disposition": attachment(path)},
    )


def _chunks(stream: IO[bytes], reads: Callable[[], None]) -> Iterator[bytes]:
    with stream:
        while chunk := stream.read(CHUNK):
            reads()
            yield chunk
