"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from det_native._version import __version__
from det_native.master.api import errors, static_page
from det_native.master.api.gate import PUBLIC, Gate
from det_native.master.api.routes import (
    analysis,
    bundles,
    checkpoints,
    clocks,
    configuration,
    data,
    environment,
    events,
    experiments,
    finding,
    life,
    master,
    models,
    notify,
    page,
    runs,
    schedules,
    space,
    trials,
)
from det_native.master.api.shared import SharedAnswers
from det_native.master.service import OWNER, Service
from det_native.master.sessions import Sessions

PREFIX = "/api/v1"
OPENAPI = f"{PREFIX}/openapi.json"


def create_app(service: Service, *, hosts: Iterable[str] = ()) -> FastAPI:
    """Return the HTTP interface of a master.

    Parameters
    ----------
    service : Service
        The master; start and close it yourself.
    hosts : iterable of str
        Names under which it may be addressed, besides those of loopback.
    """
    app = FastAPI(
        title="det_native master",
        version=__version__,
        openapi_url=OPENAPI,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.service = service
    app.state.shared = SharedAnswers()
    app.state.sessions = Sessions()
    app.state.open_page = page.no_page
    for module in (
        runs,
        master,
        environment,
        configuration,
        data,
        bundles,
        finding,
        experiments,
        analysis,
        life,
        trials,
        checkpoints,
        models,
        events,
        space,
        notify,
        schedules,
        clocks,
        page,
    ):
        app.include_router(module.router, prefix=PREFIX)
    app.include_router(static_page.router)
    errors.install(app, service.log)
    app.add_middleware(Gate, guard=service, owner=OWNER, sessions=app.state.sessions, hosts=tuple(hosts))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Describe the interface, the token included."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        for method, path in PUBLIC:
            schema["paths"][path][method.lower()]["security"] = []
        app.openapi_schema = schema
    return app.openapi_schema
