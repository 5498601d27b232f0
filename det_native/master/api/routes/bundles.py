"""Bundles and their blobs."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from det_native.errors import NotFoundError, RequestError
from det_native.master.api.answers import Hash, TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.master.store import bundles
from det_native.schema.manifests import BundleManifest
from det_native.schema.rest import BundleChecked, BundleCreated, HashList
from det_native.storage.paths import check_relative
from det_native.storage.received_packs import receive

router = APIRouter(route_class=Route, tags=["bundles"])

BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.post("/blobs/missing", response_model=HashList, responses=refusals(400))
def find_missing(body: HashList, service: TheService) -> Response:
    """Say which blobs are not here yet."""
    service.guard.keep(body.hashes)  # before: what is told to be here stays for a while
    return reply(HashList(hashes=service.blobs.missing(body.hashes)))


@router.post(
    "/blobs",
    response_model=HashList,
    responses=refusals(400),
    openapi_extra={"requestBody": {"required": True, "content": BYTES}},
)
async def put_blobs(request: Request, service: TheService) -> Response:
    """Store packed blobs, any number of them in one body."""
    return reply(HashList(hashes=await receive(request.stream(), service.blobs)))


@router.get(
    "/blobs/{sha256}",
    response_class=Response,
    responses={**refusals(404), 200: {"content": BYTES, "description": "The content."}},
)
def get_blob(sha256: Hash, service: TheService) -> Response:
    """Return the raw content of a blob."""
    if sha256 not in service.blobs:
        raise NotFoundError(f"There is no blob {sha256}.")
    blocks = (bytes(block) for block in service.blobs.blocks(sha256))
    return StreamingResponse(blocks, media_type="application/octet-stream")


@router.post("/bundles", response_model=BundleCreated, responses=refusals(400, 409))
def create_bundle(body: BundleManifest, service: TheService) -> Response:
    """Keep a bundle's manifest; its paths must stay in their folder, and its blobs must be here."""
    for entry in (*body.files, *body.links):
        check_relative(entry.path)
    gone = [entry.path for entry in body.links if not service.data.has(entry.sha256)]
    if gone:
        raise RequestError(409, f"{gone[0]!r} is no longer in the cluster's store of data; `det data put` brings it.")
    service.data.together(entry.sha256 for entry in body.links)
    service.guard.keep(body.hashes())
    return reply(service.add_bundle(body))


@router.get("/bundles/{bundle_id}", response_model=BundleManifest, responses=refusals(404))
def get_bundle(bundle_id: Hash, service: TheService) -> Response:
    """Return a bundle's manifest."""
    with service.database.read() as connection:
        return reply(bundles.get(connection, bundle_id))


@router.get("/bundles/{bundle_id}/created", response_model=BundleCreated, responses=refusals(404))
def get_bundle_created(bundle_id: Hash, service: TheService) -> Response:
    """Say whether a bundle is here and has passed the check; all that an unchanged directory costs to submit again."""
    return reply(service.bundle_created(bundle_id))


@router.post("/bundles/{bundle_id}/check", response_model=BundleChecked, responses=refusals(404))
async def check_bundle(bundle_id: Hash, service: TheService) -> Response:
    """Load a bundle in a fresh process, without running its cells; a pass is remembered."""
    checked = await asyncio.wrap_future(service.check_bundle(bundle_id))
    return reply(checked)
