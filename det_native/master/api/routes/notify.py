"""Who is told of what happens to experiments, and which messages went out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply, reply_list
from det_native.master.api.bodies import Route
from det_native.schema.notify_rest import MessageInfo, NotifyKept, NotifySettings, NotifyTest, NotifyTests

router = APIRouter(route_class=Route, tags=["notify"])

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/settings/notify", response_model=NotifySettings, responses=refusals())
def get_notify(service: TheService) -> Response:
    """Return who is told of all experiments; webhooks and secrets are shown as references."""
    return reply(NotifySettings.model_validate({"entries": service.messages.receivers()}))


@router.put("/settings/notify", response_model=NotifyKept, responses=refusals(400))
def put_notify(body: NotifySettings, service: TheService) -> Response:
    """Set who is told of all experiments; a reference that was shown stands for what it was made of."""
    kept = service.messages.set_receivers(body.entries)
    return reply(NotifyKept.model_validate({"entries": kept, "warnings": service.messages.warnings(body.entries)}))


@router.delete("/settings/notify", response_model=NotifySettings, responses=refusals())
def delete_notify(service: TheService) -> Response:
    """Have nobody told of all experiments; what configurations say holds on."""
    service.messages.set_receivers([])
    return reply(NotifySettings())


@router.post("/settings/notify/test", response_model=NotifyTests, responses=refusals())
def try_notify(service: TheService) -> Response:
    """Send a test message to everybody who is told of all experiments, and say who has taken it."""
    return reply(NotifyTests(tests=[NotifyTest.model_validate(found) for found in service.messages.test()]))


@router.get("/messages", response_model=list[MessageInfo], responses=refusals())
def list_messages(service: TheService, limit: Limit = 100) -> Response:
    """Return the newest messages, newest first."""
    found = service.messages.latest(limit)
    return reply_list([MessageInfo.model_validate(asdict(message)) for message in found])
