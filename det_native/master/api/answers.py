"""Pieces that all routes use: parameters with their limits, and answers made of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from det_native.master.api.shared import SharedAnswers
from det_native.master.service import Service
from det_native.schema.rest import ErrorBody
from det_native.schema.states import MetricKind

LARGEST = 2**53 - 1

ExperimentId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of an experiment.")]
TrialId = Annotated[int, Path(ge=1, le=LARGEST, description="Id of a trial.")]
FirstBatch = Annotated[int, Query(ge=0, le=LARGEST, description="Only from this batch on.")]
LastBatch = Annotated[int, Query(ge=0, le=LARGEST, description="Only up to this batch.")]
_SHA256 = r"^[0-9a-f]{64}$"
Hash = Annotated[str, Path(pattern=_SHA256, description="SHA-256 in lower-case hexadecimal digits.")]
BundleHash = Annotated[str, Query(pattern=_SHA256, description="Id of a bundle.")]
Uuid = Annotated[str, Path(pattern=r"^[0-9A-Za-z-]{1,64}$", description="UUID of a checkpoint.")]
RunId = Annotated[str, Path(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$", description="Id of a run.")]

_SENTENCES = {
    400: "The request contradicts itself or what is stored.",
    401: "The token is missing or wrong.",
    403: "The master is addressed by a foreign name, or from a foreign page.",
    404: "There is no such thing.",
    409: "What is stored does not allow it.",
    413: "The body is too large.",
    422: "The request is not valid; `problems` lists everything that is wrong.",
    424: "The storage of the checkpoints does not answer.",
    429: "Too many wrong tries.",
    426: "Client and master speak different protocols.",
    500: "Something failed inside the master.",
    503: "The master cannot do it at the moment.",
    507: "The disk is full.",
}


def refusals(*expected: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals that a route may answer with, for its description; the common ones are always among them."""
    codes = sorted({401, 403, 413, 422, 500, 503, 507, *expected})
    return {code: {"model": ErrorBody, "description": _SENTENCES[code]} for code in codes}


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


TheService = Annotated[Service, Depends(the_service)]
TheOwner = Annotated[str, Depends(the_owner)]
TheShared = Annotated[SharedAnswers, Depends(the_shared)]


def kinds_of(kind: MetricKind | None) -> list[MetricKind]:
    """Return the kinds of metrics that are asked for: the one given, all without one."""
    return list(MetricKind) if kind is None else [kind]


def stretch(first: int, last: int) -> tuple[int, int] | None:
    """Return a stretch of batches; None for all."""
    return None if first <= 0 and last >= LARGEST else (first, last)


def reply(model: BaseModel, status: int = 200) -> Response:
    """Answer with a model. (FastAPI would validate it a second time, and refuse not-a-numbers.)"""
    return Response(model.model_dump_json(), status, media_type="application/json")


def reply_list(models: Sequence[BaseModel]) -> Response:
    """Answer with a list of models."""
    return reply_text(list_json(models))


def list_json(models: Sequence[BaseModel]) -> str:
    """Return a list of models as JSON text."""
    return "[" + ",".join([model.model_dump_json() for model in models]) + "]"


def reply_text(text: str) -> Response:
    """Answer with JSON text."""
    return Response(text, media_type="application/json")
