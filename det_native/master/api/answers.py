"""Pieces that all routes use: parameters with their limits, and answers made of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from det_native.master.api.shared import SharedAnswers
from det_native.master.service import Service
from det_native.schema.routes import PATTERNS
from det_native.schema.states import MetricKind

LARGEST = 2**53 - 1

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]

ExperimentId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of an experiment.")]
TrialId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of a trial.")]
FirstBatch = Annotated[int, Query(ge=0, le=LARGEST, description="Only from this batch on.")]
LastBatch = Annotated[int, Query(ge=0, le=LARGEST, description="Only up to this batch.")]
_SHA256 = f"^{PATTERNS['sha256']}$"
Hash = Annotated[str, Path(pattern=_SHA256, description="SHA-256 in lower-case hexadecimal digits.")]
Uuid = Annotated[str, Path(pattern=f"^{PATTERNS['uuid']}$", description="UUID of a checkpoint.")]
RunId = Annotated[str, Path(pattern=f"^{PATTERNS['run_id']}$", description="Id of a run.")]


async def the_service(request: Request) -> Service:
    """Return the master behind the interface. (A coroutine, so that FastAPI does not call it in a thread.)"""
    service: Service = request.app.state.service
    return service


async def the_owner(request: Request) -> str:
    """Return whose token the request came with."""
    return str(request.state.owner)


async def the_shared(request: Request) -> SharedAnswers:
    """Return the answers that are being worked out for several."""
    shared: SharedAnswers = request.app.state.shared
    return shared


async def is_of_page(request: Request) -> bool:
    """Return whether the request came with the session of a browser, which opens less than the token."""
    return "session" in request.scope["state"]


TheService = Annotated[Service, Depends(the_service)]
TheOwner = Annotated[str, Depends(the_owner)]
OfPage = Annotated[bool, Depends(is_of_page)]
TheShared = Annotated[SharedAnswers, Depends(the_shared)]


def kinds_of(kind: MetricKind | None) -> list[MetricKind]:
    """Return the kinds of metrics that are asked for: the one given, all without one."""
    return list(MetricKind) if kind is None else [kind]


def stretch(first: int, last: int) -> tuple[int, int] | None:
    """Return a stretch of batches; None for all."""
    return None if first <= 0 and last >= LARGEST else (first, last)


def respond(answer: BaseModel | Sequence[BaseModel] | Response | None, status: int = 200) -> Response:
    """Make a response of a model or a list of models; None is an empty one, and a response stays as it is."""
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=status)
    text = answer.model_dump_json() if isinstance(answer, BaseModel) else list_json(answer)
    return Response(text, status, media_type="application/json")


def list_json(models: Sequence[BaseModel]) -> str:
    """Return a list of models as JSON text."""
    return "[" + ",".join([model.model_dump_json() for model in models]) + "]"


def reply_text(text: str) -> Response:
    """Answer with JSON text."""
    return Response(text, media_type="application/json")
