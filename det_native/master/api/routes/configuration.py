"""What a configuration can say, for forms that are made of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_native.master.api.answers import refusals, reply_text
from det_native.master.api.bodies import Route
from det_native.schema.config import ExperimentConfig

router = APIRouter(route_class=Route, tags=["experiments"])


@router.get("/configuration-schema", response_model=dict[str, Any], responses=refusals())
def get_configuration_schema() -> Response:
    """Return the JSON schema of a configuration: its fields with their defaults and what is valid."""
    return reply_text(_schema())


@cache
def _schema() -> str:
    return json.dumps(ExperimentConfig.model_json_schema())
