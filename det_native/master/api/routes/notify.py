"""Who is told of what happens to experiments, and which messages went out."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.notify_rest import MessageInfo, NotifyKept, NotifySettings, NotifyTest, NotifyTests

Limit = Annotated[int, Query(ge=1, le=1000)]


@serve(routes.GET_NOTIFY)
def get_notify(service: TheService) -> NotifySettings:
    return NotifySettings.model_validate({"entries": service.messages.receivers()})


@serve(routes.PUT_NOTIFY)
def put_notify(body: NotifySettings, service: TheService) -> NotifyKept:
    kept = service.messages.set_receivers(body.entries)
    return NotifyKept.model_validate({"entries": kept, "warnings": service.messages.warnings(body.entries)})


@serve(routes.DELETE_NOTIFY)
def delete_notify(service: TheService) -> NotifySettings:
    service.messages.set_receivers([])
    return NotifySettings()


@serve(routes.TRY_NOTIFY)
def try_notify(service: TheService) -> NotifyTests:
    return NotifyTests(tests=[NotifyTest.model_validate(found) for found in service.messages.test()])


@serve(routes.LIST_MESSAGES)
def list_messages(service: TheService, limit: Limit = 100) -> list[MessageInfo]:
    found = service.messages.latest(limit)
    return [MessageInfo(**message.model_dump(exclude={"owner"})) for message in found]
