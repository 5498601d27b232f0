"""The master itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from det_native.errors import RequestError
from det_native.master.api.answers import TheOwner, TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.master.connections import Connection, connection_of
from det_native.schema.rest import Cleaned, ClientProof, Health, Introduction, MasterInfo

router = APIRouter(route_class=Route, tags=["master"])

Nonce = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="A number that the client has drawn, in hex.")]


@router.get("/health", response_model=Health, responses=refusals())
def get_health(service: TheService) -> Response:
    """Say that the master lives. Public."""
    return reply(service.health())


@router.get("/introduction", response_model=Introduction, responses=refusals(409))
def introduce_master(service: TheService, request: Request, nonce: Nonce) -> Response:
    """Prove to a client over plain TCP that this is the master of its token. Public."""
    return reply(service.introduction(_connection(request).meet(nonce)))


@router.post("/introduction", response_model=Health, responses=refusals(409))
def introduce_client(service: TheService, request: Request, body: ClientProof) -> Response:
    """Take the proof of a client that it knows the token: all further requests of its connection are the user's."""
    connection = _connection(request)
    if connection.meeting is None or not service.knows_token(connection.meeting, body.proof):
        raise RequestError(401, "This is no proof of the token for what the master has asked over this connection.")
    connection.introduce()
    return reply(service.health())


def _connection(request: Request) -> Connection:
    found = connection_of(request.scope.get("state", {}))
    if found is None:
        raise RequestError(409, "An introduction is of a connection, and this request has none of its own.")
    return found


@router.get("/master", response_model=MasterInfo, responses=refusals())
def get_master(service: TheService) -> Response:
    """Say who the master is and what it has."""
    return reply(service.info())


@router.post("/master/clean", response_model=Cleaned, responses=refusals())
def clean_database(
    service: TheService,
    owner: TheOwner,
    days: Annotated[
        int | None,
        Query(ge=0, le=36_500, description="Delete the output of experiments that ended so many days ago or more."),
    ] = None,
) -> Response:
    """Give the room back that the database takes and does not use."""
    return reply(service.clean(owner, days))


@router.post("/master/shutdown", response_model=Health, status_code=202, responses=refusals())
def shut_down(
    service: TheService,
    kill: Annotated[bool, Query(description="End the workers too; they live on otherwise.")] = False,
) -> Response:
    """End the master."""
    answer = reply(service.health(), 202)
    service.shutdown(kill_workers=kill)
    return answer
