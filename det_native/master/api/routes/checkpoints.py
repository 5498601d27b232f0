"""Checkpoints and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Annotated

from fastapi import Path, Query
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError
from det_native.master.api.answers import TheOwner, TheService, Uuid
from det_native.master.api.serving import serve
from det_native.master.flow import kept_checkpoints
from det_native.master.flow.places_of_checkpoints import storage_of
from det_native.master.store import checkpoints, experiments, registry
from det_native.schema import routes
from det_native.schema.downloads import attachment
from det_native.schema.registry import CheckpointChange, CheckpointVerified, ModelVersion
from det_native.schema.rest import Checkpoint
from det_native.schema.states import CheckpointState
from det_native.schema.trial_names import trial_name

CHUNK = 1 << 20


@serve(routes.GET_CHECKPOINT)
def get_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Checkpoint:
    with service.database.read() as connection:
        return checkpoints.get(connection, uuid, owner)


@serve(routes.GET_CHECKPOINT_INSTEAD)
def get_checkpoint_instead(uuid: Uuid, service: TheService, owner: TheOwner) -> Checkpoint:
    with service.database.read() as connection:
        damaged = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, damaged.experiment_id, owner)
        known = checkpoints.of_trial(connection, damaged.trial_id, owner)
    found = kept_checkpoints.find_instead(storage_of(service.context, experiment), damaged, known)
    if found is None:
        raise NotFoundError(
            f"Trial {trial_name(damaged.experiment_id, damaged.shown_trial)} has no other checkpoint that is whole."
        )
    return found


@serve(routes.GET_VERSIONS_OF_CHECKPOINT)
def get_versions_of_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> list[ModelVersion]:
    with service.database.read() as connection:
        return registry.of_checkpoint(connection, uuid, owner)


@serve(routes.CHANGE_CHECKPOINT)
def change_checkpoint(uuid: Uuid, body: CheckpointChange, service: TheService, owner: TheOwner) -> Checkpoint:
    changed = kept_checkpoints.change(service.context, owner, uuid, body)
    if body.pinned is False:
        service.not_needed_any_more(changed.experiment_id)
    return changed


@serve(routes.VERIFY_CHECKPOINT)
def verify_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> CheckpointVerified:
    with service.database.read() as connection:
        checkpoint = checkpoints.get(connection, uuid, owner)
    return kept_checkpoints.verify(service.context, checkpoint)


@serve(routes.DELETE_CHECKPOINT)
def delete_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Checkpoint:
    return kept_checkpoints.delete(service.context, owner, uuid)


@serve(routes.GET_CHECKPOINT_FILE)
def get_checkpoint_file(
    uuid: Uuid,
    path: Annotated[str, Path(min_length=1, description="Path of a file in the manifest.")],
    service: TheService,
    owner: TheOwner,
    offset: Annotated[int, Query(ge=0, description="Bytes that have arrived already.")] = 0,
) -> Response:
    with service.database.read() as connection:
        checkpoint = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, checkpoint.experiment_id, owner)
    if checkpoint.state is CheckpointState.DELETED:
        raise NotFoundError(f"Checkpoint {uuid} was deleted.")
    file = next((file for file in checkpoint.manifest.files if file.path == path), None)
    if file is None:
        raise NotFoundError(f"Checkpoint {uuid} has no file {path!r}.")
    service.collector.reads(uuid)
    storage = storage_of(service.context, experiment)
    kept_checkpoints.refuse_elsewhere(experiment, storage)
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
