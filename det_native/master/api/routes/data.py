"""The cluster's store of data."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.schema.datasets import (
    DATA_NAME,
    DataSetCreate,
    DataSetInfo,
    FoundFiles,
    MissingFiles,
    Received,
    Sizes,
    WantedFiles,
)

router = APIRouter(route_class=Route, tags=["data"])

BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
DataName = Annotated[str, Path(pattern=DATA_NAME, description="Name of a set of data.")]


@router.post("/data/missing", response_model=MissingFiles, responses=refusals(400))
def find_missing_data(body: WantedFiles, service: TheService) -> Response:
    """Say which files are not here, and how much of them has arrived."""
    return reply(MissingFiles(files=service.data.missing(body.files)))


@router.post("/data/find", response_model=FoundFiles, responses=refusals(400))
def find_data(body: Sizes, service: TheService) -> Response:
    """Say which files of these sizes are here."""
    return reply(FoundFiles(files=service.data.find(body.sizes)))


@router.post(
    "/data/contents",
    response_model=Received,
    responses=refusals(400, 409),
    openapi_extra={"requestBody": {"required": True, "content": BYTES}},
)
async def put_data(request: Request, service: TheService) -> Response:
    """Take pieces of files, each where the last one ended; what arrives is kept, however the request ends."""
    return reply(Received(size=await service.data.receive(request.stream())))


@router.get("/data", response_model=list[DataSetInfo], responses=refusals())
def list_data(service: TheService) -> Response:
    """Return the named sets."""
    return reply_list(service.data.sets())


@router.post("/data", response_model=DataSetInfo, responses=refusals(400, 409))
def create_data(body: DataSetCreate, service: TheService) -> Response:
    """Give files that are here a name; those that had it before go."""
    return reply(service.create_data(body))


@router.delete("/data/{name}", response_model=list[DataSetInfo], responses=refusals(404, 409))
def remove_data(name: DataName, service: TheService) -> Response:
    """Remove a set and the files that no other has; return those that are left."""
    service.remove_data(name)
    return reply_list(service.data.sets())
