"""What the workers' Python has, for a client that compares before it sends."""

from __future__ import annotations

from det_native.master.api.answers import TheService
from det_native.master.api.serving import serve
from det_native.schema import routes
from det_native.schema.worker_environment import EnvironmentAnswer, EnvironmentQuestion


@serve(routes.ASK_ENVIRONMENT)
def ask_environment(body: EnvironmentQuestion, service: TheService) -> EnvironmentAnswer:
    return service.environment(body)
