"""What the master answers to a browser's requests, as JSON: what a page shows is compared with it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from det_native.client.session import Session
from det_native.schema.bodies import API
from det_native.schema.routes import find_route


class MasterAnswers:
    """Asks the master by addresses, as a page does; all else is that of the session.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def get(self, path: str, **query: Any) -> Any:
        """Return what is there."""
        return self._ask("GET", path, None, query)

    def post(self, path: str) -> Any:
        """Have something done."""
        return self._ask("POST", path, None, {})

    def patch(self, path: str, change: dict[str, Any]) -> Any:
        """Change something."""
        return self._ask("PATCH", path, change, {})

    def delete(self, path: str) -> Any:
        """Delete something."""
        return self._ask("DELETE", path, None, {})

    def _ask(self, method: str, path: str, body: dict[str, Any] | None, query: dict[str, Any]) -> Any:
        route = find_route(method, f"{API}{path}")
        match = route and route.match(f"{API}{path}")
        assert route is not None
        assert match is not None, path
        content = TypeAdapter(route.body).validate_python(body)
        answer = self._session.call(route, content, **match.groupdict(), **query)
        return TypeAdapter(route.answer).dump_python(answer, mode="json")
