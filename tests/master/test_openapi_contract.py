"""The interface against its own description: with a token it keeps to it, without one nothing opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from master_parts import Master, running_master
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = pytest.mark.slow  # a whole master for each test

# A stream of events has no end, so no generated request can wait for it; test_event_stream.py does.
STREAM = "/api/v1/events"
# Would end the event streams of the master under test.
SHUTDOWN = "/api/v1/master/shutdown"


@pytest.fixture(scope="module")
def served_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Give one master for all generated requests."""
    with running_master(tmp_path_factory.mktemp("contract") / "home") as running:
        # The event loop's own thread for blobs starts with the first of them; it ends with the master, not with a test.
        running.client.post("/api/v1/blobs", content=b"")
        yield running


EXAMPLES = settings(
    max_examples=max(5, settings.default.max_examples // 20),  # of each operation
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def each_case(master: Master, check: Callable[[schemathesis.Case], None]) -> int:
    """Call `check` with generated requests to every operation; return how many operations there are."""
    description = master.client.get("/api/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(description)
    schema.config.update(base_url=str(master.client.base_url))
    operations = [found.ok() for found in schema.exclude(path=[STREAM, SHUTDOWN]).get_all_operations()]
    for operation in operations:
        EXAMPLES(given(operation.as_strategy())(check))()
    return len(operations)


def test_the_interface_keeps_to_its_description(served_master: Master) -> None:
    def check(case: schemathesis.Case) -> None:
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

    assert each_case(served_master, check) > 20


@pytest.mark.long
def test_without_a_token_only_health_and_an_introduction_answer(served_master: Master) -> None:
    def check(case: schemathesis.Case) -> None:
        response = case.call()
        public = {("GET", "/api/v1/health"), ("GET", "/api/v1/introduction")}
        opened = (case.method, case.operation.path) in public and response.status_code == 200
        assert opened or 400 <= response.status_code < 500

    assert each_case(served_master, check) > 20


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
