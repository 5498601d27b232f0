"""The table of routes: what the master serves, and that nobody writes an address of it by hand."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.routing import APIRoute

from det_native.master.api.app import create_app
from det_native.master.api.serving import master_routes
from det_native.master.service import Service
from det_native.schema.routes import API, GET_CHECKPOINT_FILE, GET_METRICS, LIST_TRIAL_SUMMARIES, OPENAPI, ROUTES

ROOT = Path(__file__).parents[1]
SOURCES = ("det_native", "harness", "jupyter_ext/det_jupyter")
TABLE = {"det_native/schema/routes.py", "det_native/schema/bodies.py"}
# Addresses of views of the page, which stand behind a # and are called as the REST interface calls what they show.
VIEWS = {"det_native/client/open_command.py", "det_native/client/page_link.py"}
# The first parts of addresses, of which a string is one with a slash before it.
_FIRST = sorted({route.path.removeprefix(API).split("/")[1] for route in ROUTES.values()})
_ADDRESS = re.compile(rf"{API}\b.*|/({'|'.join(_FIRST)})([/?].*)?", re.DOTALL)


class _Log:
    """Stands where a master would be."""

    log = Path("master.log")


@cache
def served() -> dict[str, APIRoute]:
    """Return what FastAPI serves, by the names of operations."""
    return {str(route.operation_id): route for route in master_routes() if isinstance(route, APIRoute)}


def test_every_route_that_is_served_is_in_the_table() -> None:
    described: dict[str, Any] = create_app(cast(Service, _Log())).openapi()["paths"]
    operations = {
        (method.upper(), path, operation["operationId"])
        for path, methods in described.items()
        for method, operation in methods.items()
    }
    table = {(route.method, route.path.replace(":path}", "}"), name) for name, route in ROUTES.items()}
    assert operations == table
    assert OPENAPI.startswith(API)


@pytest.mark.parametrize("name", ROUTES)
def test_a_handler_takes_what_the_table_says(name: str) -> None:
    route, handler = ROUTES[name], served()[name]
    assert {field.alias for field in handler.dependant.path_params} == set(re.findall(r"\{(\w+)", route.path))
    assert _query_of(handler.dependant) == set(route.query)
    body = None if handler.body_field is None else handler.body_field.field_info.annotation
    assert body is (None if route.body in (bytes, type(None)) else route.body)
    if not route.deprecated:
        assert inspect.unwrap(handler.endpoint).__name__ == name


def _query_of(dependant: Any) -> set[str]:
    return {field.alias for field in dependant.query_params}.union(*map(_query_of, dependant.dependencies))


def test_no_two_routes_have_the_same_address() -> None:
    addresses = [(route.method, re.sub(r"\{[\w:]+\}", "", route.path)) for route in ROUTES.values()]
    assert len(set(addresses)) == len(addresses)


def test_an_address_is_encoded_and_has_no_parameters_that_are_none() -> None:
    assert GET_METRICS.address(trial_id=3, kind="training", limit=None) == f"{API}/trials/3/metrics?kind=training"
    assert GET_CHECKPOINT_FILE.address(uuid="a", path="b c/d?e") == f"{API}/checkpoints/a/files/b%20c/d%3Fe"
    several = LIST_TRIAL_SUMMARIES.address(experiment_id=[1, 2], best=True)
    assert several == f"{API}/trial-summaries?experiment_id=1&experiment_id=2&best=true"
    for wrong in ({}, {"trial_id": 3, "kid": "training"}, {"kind": "training"}):
        with pytest.raises(TypeError, match=r"GET /api/v1/trials/\{trial_id\}/metrics has other parameters than"):
            GET_METRICS.address(**wrong)


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a file, formatted ones with their text alone, each with its line; no docstrings."""
    tree = ast.parse(path.read_text())
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
            parts = [str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def test_no_address_is_written_by_hand() -> None:
    written = [
        f"{name}:{line}: {text}"
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in TABLE | VIEWS
        for line, text in strings_of(path)
        if _ADDRESS.fullmatch(text)
    ]
    assert not written, "\n".join(written)
