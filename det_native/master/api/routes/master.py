"""The master itself, its queue, and the Python of its workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from det_native.errors import RequestError
from det_native.master.api.answers import TheOwner, TheService
from det_native.master.api.serving import serve
from det_native.master.connections import Connection, connection_of
from det_native.schema import routes
from det_native.schema.queue import Queue
from det_native.schema.rest import Cleaned, ClientProof, Health, Introduction, MasterInfo
from det_native.schema.worker_environment import EnvironmentAnswer, EnvironmentQuestion

Nonce = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="A number that the client has drawn, in hex.")]


@serve(routes.GET_HEALTH)
def get_health(service: TheService) -> Health:
    return service.health()


@serve(routes.INTRODUCE_MASTER)
def introduce_master(service: TheService, request: Request, nonce: Nonce) -> Introduction:
    return service.introduction(_connection(request).meet(nonce))


@serve(routes.INTRODUCE_CLIENT)
def introduce_client(service: TheService, request: Request, body: ClientProof) -> Health:
    connection = _connection(request)
    if connection.meeting is None or not service.knows_token(connection.meeting, body.proof):
        raise RequestError(401, "This is no proof of the token for what the master has asked over this connection.")
    connection.introduce()
    return service.health()


def _connection(request: Request) -> Connection:
    found = connection_of(request.scope.get("state", {}))
    if found is None:
        raise RequestError(409, "An introduction is of a connection, and this request has none of its own.")
    return found


@serve(routes.GET_MASTER)
def get_master(service: TheService) -> MasterInfo:
    return service.info()


@serve(routes.CLEAN_DATABASE)
def clean_database(
    service: TheService,
    owner: TheOwner,
    days: Annotated[
        int | None,
        Query(ge=0, le=36_500, description="Delete the output of experiments that ended so many days ago or more."),
    ] = None,
) -> Cleaned:
    return service.clean(owner, days)


@serve(routes.SHUT_DOWN)
def shut_down(
    service: TheService,
    kill: Annotated[bool, Query(description="End the workers too; they live on otherwise.")] = False,
) -> Health:
    answer = service.health()
    service.shutdown(kill_workers=kill)
    return answer


@serve(routes.GET_QUEUE)
def get_queue(service: TheService, limit: Annotated[int, Query(ge=1, le=1000)] = 500) -> Queue:
    return service.queue(limit)


@serve(routes.ASK_ENVIRONMENT)
def ask_environment(body: EnvironmentQuestion, service: TheService) -> EnvironmentAnswer:
    return service.environment(body)
