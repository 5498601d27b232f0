"""What the workers' Python has, for a client that compares before it sends."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from det_native.master.api.answers import TheService, refusals, reply
from det_native.master.api.bodies import Route
from det_native.schema.worker_environment import EnvironmentAnswer, EnvironmentQuestion

router = APIRouter(route_class=Route, tags=["environment"])


@router.post("/environment", response_model=EnvironmentAnswer, responses=refusals(409))
def ask_environment(body: EnvironmentQuestion, service: TheService) -> Response:
    """Say which of these modules the workers can import, and in which versions; nothing is imported for it."""
    return reply(service.environment(body))
