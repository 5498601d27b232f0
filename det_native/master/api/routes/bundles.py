"""Bundles and their blobs."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError, RequestError
from det_native.master.api.answers import Hash, TheService
from det_native.master.api.serving import serve
from det_native.master.store import bundles
from det_native.schema import routes
from det_native.schema.manifests import BundleManifest
from det_native.schema.rest import BundleChecked, BundleCreated, HashList
from det_native.storage.paths import check_relative
from det_native.storage.received_packs import receive


@serve(routes.FIND_MISSING)
def find_missing(body: HashList, service: TheService) -> HashList:
    service.guard.keep(body.hashes)  # before: what is told to be here stays for a while
    return HashList(hashes=service.blobs.missing(body.hashes))


@serve(routes.PUT_BLOBS)
async def put_blobs(request: Request, service: TheService) -> HashList:
    return HashList(hashes=await receive(request.stream(), service.blobs))


@serve(routes.GET_BLOB)
def get_blob(sha256: Hash, service: TheService) -> Response:
    if sha256 not in service.blobs:
        raise NotFoundError(f"There is no blob {sha256}.")
    blocks = (bytes(block) for block in service.blobs.blocks(sha256))
    return StreamingResponse(blocks, media_type="application/octet-stream")


@serve(routes.CREATE_BUNDLE)
def create_bundle(body: BundleManifest, service: TheService) -> BundleCreated:
    for entry in (*body.files, *body.links):
        check_relative(entry.path)
    gone = [entry.path for entry in body.links if not service.data.has(entry.sha256)]
    if gone:
        raise RequestError(409, f"{gone[0]!r} is no longer in the cluster's store of data; `det data put` brings it.")
    service.data.together(entry.sha256 for entry in body.links)
    service.guard.keep(body.hashes())
    return service.add_bundle(body)


@serve(routes.GET_BUNDLE)
def get_bundle(bundle_id: Hash, service: TheService) -> BundleManifest:
    with service.database.read() as connection:
        return bundles.get(connection, bundle_id)


@serve(routes.GET_BUNDLE_CREATED)
def get_bundle_created(bundle_id: Hash, service: TheService) -> BundleCreated:
    return service.bundle_created(bundle_id)


@serve(routes.CHECK_BUNDLE)
async def check_bundle(bundle_id: Hash, service: TheService) -> BundleChecked:
    return await asyncio.wrap_future(service.check_bundle(bundle_id))
