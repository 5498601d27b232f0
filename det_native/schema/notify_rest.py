"""Bodies of the routes under ``/settings/notify`` and ``/messages``."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from det_native.schema.bodies import Answer, Sent
from det_native.schema.notify import Notify


class NotifySettings(Sent):
    """Of the user: who is told of what happens to all experiments; webhooks and secrets are shown as references."""

    entries: list[Notify] = Field(default_factory=list, max_length=20)


class NotifyKept(Answer):
    """Answer of ``PUT /settings/notify``: who is told from now on; `warnings` are sentences on what cannot be sent."""

    entries: list[Notify]
    warnings: list[str] = Field(default_factory=list)


class NotifyTest(Answer):
    """What became of a test message: `error` is empty if it was taken."""

    name: str
    kind: str
    error: str


class NotifyTests(Answer):
    """Answer of ``POST /settings/notify/test``."""

    tests: list[NotifyTest]


class MessageInfo(Answer):
    """A message: WAITING, SENT or FAILED; `error` says why it has not left, `next` when it is tried (again)."""

    id: int
    experiment_id: int | None
    trial_id: int | None
    event: str
    target: dict[str, Any]
    body: dict[str, Any]
    state: str
    attempts: int
    next: str | None
    error: str
    created: str
