"""Bodies of the routes under ``/settings/notify`` and ``/messages``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from det_native.schema.notify import Notify


class NotifySettings(BaseModel):
    """Of the user: who is told of what happens to all experiments; webhooks and secrets are shown as references."""

    model_config = ConfigDict(extra="forbid")

    entries: list[Notify] = Field(default_factory=list, max_length=20)


class NotifyKept(BaseModel):
    """Answer of ``PUT /settings/notify``: who is told from now on; `warnings` are sentences on what cannot be sent."""

    model_config = ConfigDict(extra="ignore")

    entries: list[Notify]
    warnings: list[str] = Field(default_factory=list)


class NotifyTest(BaseModel):
    """What became of a test message: `error` is empty if it was taken."""

    model_config = ConfigDict(extra="ignore")

    name: str
    kind: str
    error: str


class NotifyTests(BaseModel):
    """Answer of ``POST /settings/notify/test``."""

    model_config = ConfigDict(extra="ignore")

    tests: list[NotifyTest]


class MessageInfo(BaseModel):
    """A message: WAITING, SENT or FAILED; `error` says why it has not left, `next` when it is tried (again)."""

    model_config = ConfigDict(extra="ignore")

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
