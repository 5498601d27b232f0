"""Checkpoints and their files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError
from det_native.master.api.answers import TheOwner, TheService, Uuid, refusals, reply
from det_native.master.api.routes.bundles import BYTES
from det_native.master.flow.jobs import checkpoint_uri
from det_native.master.store import checkpoints, experiments
from det_native.schema.config import ExperimentConfig
from det_native.schema.rest import Checkpoint
from det_native.schema.states import CheckpointState
from det_native.storage.checkpoints import CheckpointStorage

router = APIRouter(prefix="/checkpoints", tags=["checkpoints"])

CHUNK = 1 << 20


@router.get("/{uuid}", response_model=Checkpoint, responses=refusals(404))
def get_checkpoint(uuid: Uuid, service: TheService, owner: TheOwner) -> Response:
    """Return a checkpoint; it may be deleted."""
    with service.database.read() as connection:
        return reply(checkpoints.get(connection, uuid, owner))


@router.get(
    "/{uuid}/files/{path:path}",
    response_class=Response,
    responses={**refusals(404), 200: {"content": BYTES, "description": "The content."}},
)
def get_checkpoint_file(
    uuid: Uuid,
    path: Annotated[str, Path(min_length=1, description="Path of a file in the manifest.")],
    service: TheService,
    owner: TheOwner,
) -> Response:
    """Return a file of a checkpoint. Only files that the manifest names exist."""
    with service.database.read() as connection:
        checkpoint = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, checkpoint.experiment_id, owner)
    if checkpoint.state is CheckpointState.DELETED:
        raise NotFoundError(f"Checkpoint {uuid} was deleted.")
    file = next((file for file in checkpoint.manifest.files if file.path == path), None)
    if file is None:
        raise NotFoundError(f"Checkpoint {uuid} has no file {path!r}.")
    storage = CheckpointStorage(checkpoint_uri(ExperimentConfig.model_validate(experiment.config), service.places))
    return StreamingResponse(
        _chunks(storage.open(uuid, path)),
        media_type="application/octet-stream",
        headers={"Content-Length": str(file.size), "Content-Disposition": "attachment"},
    )


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        while chunk := stream.read(CHUNK):
            yield chunk
