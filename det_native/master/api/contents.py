"""Answers with the content of a blob that a trial has reported under a name."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError, RequestError
from det_native.schema.downloads import attachment
from det_native.schema.outputs import Artifact
from det_native.storage.blobs import BlobStore


def file_response(
    blobs: BlobStore, artifact: Artifact, offset: int, *, trial: str, expected: str | None = None
) -> Response:
    """Answer with the content of a file that the code of a trial has written, from `offset` on.

    `trial` is what people call it.

    Raises
    ------
    NotFoundError
        If its content was not kept.
    RequestError
        409 if it has changed since, or its content is lost.
    """
    title = f"{artifact.path!r} of trial {trial}"
    if artifact.sha256 is None:
        raise NotFoundError(f"The content of {title} was not kept. {artifact.note}".strip())
    if expected is not None and expected != artifact.sha256:
        raise RequestError(409, f"The training has written {title} anew since; ask for the list of its files again.")
    if artifact.sha256 not in blobs:
        raise RequestError(409, f"The content of {title} is lost: it was damaged or removed in {blobs.uri}.")
    begin = min(offset, artifact.size)
    return StreamingResponse(
        _from(blobs.blocks(artifact.sha256), begin),
        media_type="application/octet-stream",
        headers={"Content-Length": str(artifact.size - begin), "Content-Disposition": attachment(artifact.path)},
    )


def _from(blocks: Iterator[bytes | bytearray | memoryview], offset: int) -> Iterator[bytes]:
    for block in blocks:
        if offset >= len(block):
            offset -= len(block)
        else:
            yield bytes(block[offset:])
            offset = 0
