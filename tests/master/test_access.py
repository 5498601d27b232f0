"""Who may do what: every route, without a token, with a run's token, under foreign names."""

from __future__ import annotations

import http.client
import json
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from master_parts import Master, Worker, manifest
from starlette.routing import Mount

from det_native.master.api import gate
from det_native.schema.run_ids import new_id

RUN = "/api/v1/runs/"


def paths_of(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield method and path of everything that is routed, mounts and routers within routers included."""
    for route in routes:
        if hasattr(route, "effective_candidates"):  # a router that FastAPI keeps as one; its routes know their prefix
            yield from paths_of(route.effective_candidates(), prefix)
        elif isinstance(route, Mount):
            yield "GET", f"{prefix}{route.path}/anything"
            yield from paths_of(route.routes, prefix + route.path)
        else:
            for method in route.methods:
                yield method, prefix + route.path


def all_requests(master: Master) -> list[tuple[str, str]]:
    """Return every operation: those of the router and those that are described."""
    described = master.app.openapi()["paths"]
    found = {(method.upper(), path) for path, operations in described.items() for method in operations}
    found |= set(paths_of(master.app.routes))
    run_id = new_id()
    values = {"run_id": run_id, "sha256": "0" * 64, "bundle_id": "0" * 64, "uuid": "x", "path": "y", "path:path": "y"}
    return sorted(
        (method, re.sub(r"\{([\w:]+)\}", lambda name: values.get(name[1], "1"), path)) for method, path in found
    )


def test_every_route_wants_a_token(master: Master) -> None:
    requests = all_requests(master)
    assert len(requests) >= 25
    assert {("GET", "/api/v1/events"), ("GET", "/api/v1/openapi.json"), ("POST", "/api/v1/experiments")} <= set(
        requests
    )
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {master.token}"},
    ):
        open_ones = set()
        for method, path in requests:
            answer = master.client.request(method, path, headers=headers)
            if answer.status_code == 401:
                assert "Bearer" in answer.headers["www-authenticate"]
                if method != "HEAD":
                    assert "token" in answer.json()["error"]
            else:
                open_ones.add((method, path))
        introduction = "/api/v1/introduction"
        files = {(method, path) for method in ("GET", "HEAD") for path in ("/", "/index.html", "/page.js", "/page.css")}
        assert open_ones == files | {
            ("GET", "/api/v1/health"),
            ("GET", introduction),
            ("POST", introduction),
            ("POST", "/api/v1/session"),
        }
        assert master.client.get(introduction, headers=headers).status_code == 422
        assert master.client.post(introduction, json={"proof": "0" * 64}, headers=headers).status_code == 401


def test_unknown_paths_want_a_token_too(master: Master) -> None:
    for path in (
        "/docs",
        "/page.js/",
        "/page/index.html",
        "/..%2fpage.js",
        "/api/v1/health/",
        "/api/v1//health",
        "/api/v1/runs/x/y",
        "/%2e%2e/api/v1/health",
    ):
        assert master.client.get(path, headers={"Authorization": ""}).status_code == 401
        answer = master.client.get(path)
        assert answer.status_code == 404
        assert set(answer.json()) == {"error", "problems", "missing"}


def test_the_token_of_a_run_opens_only_its_own_routes(master: Master) -> None:
    master.create({"searcher": {"name": "random", "max_trials": 2}})
    first, second = master.world.wait_for_jobs(2)
    headers = {"Authorization": f"Bearer {first.token}"}
    for method, path in all_requests(master):
        if (method, path) not in gate.OPEN:
            assert master.client.request(method, path, headers=headers).status_code == 401, path
    assert master.client.get(f"{RUN}{first.run_id}/best", headers=headers).status_code == 200
    for path in (f"{second.run_id}/best", f"{first.run_id}/../{second.run_id}/best", f"{first.run_id}"):
        assert master.client.get(RUN + path, headers=headers).status_code == 401
    raw = raw_request(
        master, "GET", f"{RUN}{first.run_id}/../../experiments", {"Authorization": f"Bearer {first.token}"}
    )
    assert raw[0] == 401


@pytest.mark.long
def test_the_token_of_an_earlier_run_changes_nothing_any_more(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    master.launcher.end(job.run_id, -9)
    master.world.wait_for_jobs(2)
    answer = Worker(master, job).post({"seq": 1, "type": "started", "batch": 0})
    assert answer.status_code == 409
    assert "not the current attempt" in answer.json()["error"]


@pytest.mark.long
def test_the_token_of_a_run_that_has_ended_reads_nothing(master: Master) -> None:
    number = master.create()["id"]
    (job,) = master.world.wait_for_jobs(1)
    headers = {"Authorization": f"Bearer {job.token}"}
    assert master.client.get(f"{RUN}{job.run_id}/best", headers=headers).status_code == 200
    Worker(master, job).complete()
    master.until_state(number, "COMPLETED")
    master.until("/master", lambda found: all(slot["trial_id"] is None for slot in found["slots"]))
    answer = master.client.get(f"{RUN}{job.run_id}/best", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, f"Run {job.run_id} has ended.")


def raw_request(
    master: Master, method: str, path: str, headers: dict[str, str], body: bytes | Iterator[bytes] | None = None
) -> tuple[int, dict[str, Any]]:
    """Send a request exactly as it is, and return status and body."""
    connection = http.client.HTTPConnection(urlsplit(str(master.client.base_url)).netloc)
    try:
        chunked = body is not None and not isinstance(body, bytes)
        connection.request(method, path, body, headers, encode_chunked=chunked)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]", "localhost@evil.example"])
def test_foreign_hosts_are_refused(master: Master, host: str) -> None:
    headers = {"Host": host, "Authorization": f"Bearer {master.token}"}
    for path in ("/api/v1/health", "/api/v1/master"):
        assert raw_request(master, "GET", path, headers)[0] in (400, 403)


def test_hosts_of_loopback_are_let_in(master: Master) -> None:
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8080"):
        assert raw_request(master, "GET", "/api/v1/health", {"Host": host})[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_foreign_pages_may_not_change_anything(master: Master, origin: str) -> None:
    headers = {"Authorization": f"Bearer {master.token}", "Origin": origin}
    status, body = raw_request(master, "POST", "/api/v1/blobs/missing", headers, b'{"hashes": []}')
    assert (status, body["error"]) == (403, f"Pages of {origin!r} may not use this master.")
    answer = master.client.get("/api/v1/master", headers=headers)
    assert answer.status_code == 200
    assert not any(name.startswith("access-control") for name in answer.headers)
    own = str(master.client.base_url)
    allowed = master.client.post("/api/v1/blobs/missing", json={"hashes": []}, headers={"Origin": own})
    assert allowed.status_code == 200


def test_bodies_have_a_limit(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gate.LIMITS, "/api/v1/blobs/missing", 1 << 20)
    headers = {"Authorization": f"Bearer {master.token}", "Content-Type": "application/json"}
    path = "/api/v1/blobs/missing"
    declared = raw_request(master, "POST", path, {**headers, "Content-Length": str(2 << 20)}, b"")
    chunks = (b" " * 65536 for _ in range(32))
    counted = raw_request(master, "POST", path, {**headers, "Transfer-Encoding": "chunked"}, chunks)
    for status, body in (declared, counted):
        assert (status, body["error"]) == (413, "The body is larger than 1 MiB.")


@pytest.mark.long
def test_a_refusal_is_short_whatever_was_sent(master: Master) -> None:
    answer = master.client.post("/api/v1/experiments", json={"x" * 1_000_000: 1})
    assert answer.status_code == 422
    assert len(answer.content) < 10_000
    many = {f"field{number}": number for number in range(10_000)}
    answer = master.client.post("/api/v1/experiments", json=many)
    assert len(answer.json()["problems"]) == 101
    assert "more problems" in answer.json()["problems"][-1]["what"]
    large = master.client.post("/api/v1/experiments", content=b"[" + b"1," * (8 << 20) + b"1]")
    assert (large.status_code, large.json()["error"]) == (413, "The body is larger than 8 MiB.")


@pytest.mark.long
@pytest.mark.parametrize("path", ["../evil.py", "/etc/passwd", "a/../../b", "a\\b"])
def test_a_bundle_whose_files_leave_its_folder_is_refused_at_once(master: Master, path: str) -> None:
    body = manifest().model_dump(mode="json")
    body["files"] = [{"path": path, "sha256": "0" * 64, "size": 1}]
    answer = master.client.post("/api/v1/bundles", json=body)
    assert answer.status_code == 400
    assert repr(path) in answer.json()["error"]


def test_answers_are_not_for_browsers(master: Master) -> None:
    headers = master.client.get("/api/v1/master").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_the_token_and_the_home_are_private(master: Master) -> None:
    home = master.service.places.home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
    assert master.token not in json.dumps(master.get("/master"))
