"""What a configuration can say, for forms that are made of it."""

from __future__ import annotations

import json
from functools import cache

from starlette.responses import Response

from det_native.master.api.answers import reply_text
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.config import ExperimentConfig


@serve(routes.GET_CONFIGURATION_SCHEMA)
def get_configuration_schema() -> Response:
    return reply_text(_schema())


@cache
def _schema() -> str:
    return json.dumps(ExperimentConfig.model_json_schema())
