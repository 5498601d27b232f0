"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from det_native._version import __version__
from det_native.master.api import errors, static_page
from det_native.master.api.gate import Gate

# Each registers its handlers with ``serve``.
from det_native.master.api.routes import (  # noqa: F401
    bundles,
    checkpoints,
    data,
    events,
    experiment_table,
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
from det_native.master.api.serving import master_routes
from det_native.master.api.shared import SharedAnswers
from det_native.master.service import OWNER, Service
from det_native.master.sessions import Sessions
from det_native.schema.routes import OPENAPI, ROUTES, Access


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
    )
    app.state.service = service
    app.state.shared = SharedAnswers()
    app.state.sessions = Sessions()
    app.state.open_page = page.no_page
    app.router.routes.extend(master_routes())
    app.router.routes.extend(static_page.router.routes)
    errors.install(app, service.log)
    app.add_middleware(Gate, guard=service, owner=OWNER, sessions=app.state.sessions, hosts=tuple(hosts))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Describe the interface, the token included."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        for route in ROUTES.values():
            if route.access is Access.PUBLIC:
                schema["paths"][route.path][route.method.lower()]["security"] = []
        app.openapi_schema = schema
    return app.openapi_schema
