"""The cluster's store of data."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
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

DataName = Annotated[str, Path(pattern=DATA_NAME, description="Name of a set of data.")]


@serve(routes.FIND_MISSING_DATA)
def find_missing_data(body: WantedFiles, service: TheService) -> MissingFiles:
    return MissingFiles(files=service.data.missing(body.files))


@serve(routes.FIND_DATA)
def find_data(body: Sizes, service: TheService) -> FoundFiles:
    return FoundFiles(files=service.data.find(body.sizes))


@serve(routes.PUT_DATA)
async def put_data(request: Request, service: TheService) -> Received:
    return Received(size=await service.data.receive(request.stream()))


@serve(routes.LIST_DATA)
def list_data(service: TheService) -> list[DataSetInfo]:
    return service.data.sets()


@serve(routes.CREATE_DATA)
def create_data(body: DataSetCreate, service: TheService) -> DataSetInfo:
    return service.create_data(body)


@serve(routes.REMOVE_DATA)
def remove_data(name: DataName, service: TheService) -> list[DataSetInfo]:
    service.remove_data(name)
    return service.data.sets()
