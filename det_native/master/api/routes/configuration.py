"""What a configuration can say, for forms that are made of it."""

from __future__ import annotations

import json
from functools import cache

from starlette.responses import Response

from det_native.master.api.answers import OfPage, reply_text
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.config import ExperimentConfig
from det_native.schema.forks import closed_to_pages


@serve(routes.GET_CONFIGURATION_SCHEMA)
def get_configuration_schema(of_page: OfPage) -> Response:
    return reply_text(_schema(of_page))


@cache
def _schema(of_page: bool) -> str:
    """Return the schema as text; a page is told by ``readOnly`` what its session may not change."""
    schema = ExperimentConfig.model_json_schema()
    for name, field in schema["properties"].items() if of_page else ():
        section = schema["$defs"].get(field.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        for path in closed_to_pages({name: section}):
            (field if path == name else section[path.removeprefix(f"{name}.")])["readOnly"] = True
    return json.dumps(schema)
