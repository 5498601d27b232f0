"""The interface against its own description: with a token it keeps to it, without one nothing opens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from master_parts import Master, running_master
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

# A stream of events has no end, so no generated request can wait for it; test_event_stream.py does.
STREAM = "/api/v1/events"
# Would end the event streams of the master under test.
SHUTDOWN = "/api/v1/master/shutdown"


@pytest.fixture(scope="module")
def served_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Give one master for all generated requests."""
    with running_master(tmp_path_factory.mktemp("contract") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def interface(served_master: Master) -> schemathesis.BaseSchema:
    """Give the description as the master serves it."""
    description = served_master.client.get("/api/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(description)
    schema.config.update(base_url=str(served_master.client.base_url))
    return schema.exclude(path=[STREAM, SHUTDOWN])


schema = schemathesis.pytest.from_fixture("interface")
examples = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schema.parametrize()
@examples
def test_the_interface_keeps_to_its_description(case: schemathesis.Case, served_master: Master) -> None:
    case.call_and_validate(
        headers={"Authorization": f"Bearer {served_master.token}"},
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
            negative_data_rejection,
        ],
    )


@schema.parametrize()
@examples
def test_without_a_token_only_health_answers(case: schemathesis.Case, served_master: Master) -> None:
    response = case.call()
    assert response.status_code >= 400 or case.operation.path == "/api/v1/health"
    assert response.status_code < 500


def test_the_description_is_complete(served_master: Master) -> None:
    description = served_master.client.get("/api/v1/openapi.json").json()
    assert description["security"] == [{"token": []}]
    assert description["paths"]["/api/v1/health"]["get"]["security"] == []
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            for code in ("401", "422", "500"):
                body = operation["responses"][code]["content"]["application/json"]["schema"]
                assert body["$ref"].endswith("/ErrorBody"), (method, path, code)
