"""The cluster's store of data."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import datasets, routes

DataName = Annotated[str, Path(pattern=datasets.DATA_NAME, description="Name of a set of data.")]


@serve(routes.FIND_MISSING_DATA)
def find_missing_data(body: datasets.WantedFiles, service: TheService) -> datasets.MissingFiles:
    return datasets.MissingFiles(files=service.data.missing(body.files))


@serve(routes.FIND_DATA)
def find_data(body: datasets.Sizes, service: TheService) -> datasets.FoundFiles:
    return datasets.FoundFiles(files=service.data.find(body.sizes))


@serve(routes.PUT_DATA)
async def put_data(request: Request, service: TheService) -> datasets.Received:
    return datasets.Received(size=await service.data.receive(request.stream()))


@serve(routes.LIST_DATA)
def list_data(service: TheService) -> list[datasets.DataSetInfo]:
    return service.data.sets()


@serve(routes.CREATE_DATA)
def create_data(body: datasets.DataSetCreate, service: TheService) -> datasets.DataSetInfo:
    return service.create_data(body)


@serve(routes.REMOVE_DATA)
def remove_data(name: DataName, service: TheService) -> list[datasets.DataSetInfo]:
    service.remove_data(name)
    return service.data.sets()
