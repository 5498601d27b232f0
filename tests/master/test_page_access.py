"""The page at the master by HTTP: its files, signing in, what a session opens, and from where."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from master_parts import Master, running_master
from test_access import all_requests

from det_native.master.api import gate, static_page
from det_native.schema.config import ExperimentConfig
from det_native.schema.life import ExperimentFork
from det_native.schema.page import KEY_HEADER
from det_native.schema.resources import Resources
from det_native.schema.routes import ROUTES, Access


@pytest.fixture
def page_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give files of a page, which a source tree that was not built has not."""
    for name in ("index.html", "page.js", "page.css"):
        (tmp_path / name).write_text(f"content of {name} " * 20)
    monkeypatch.setattr(static_page, "FOLDER", tmp_path)
    static_page._read.cache_clear()
    yield
    static_page._read.cache_clear()


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    """Give a master that the tests share: none of them leaves a session."""
    with running_master(tmp_path_factory.mktemp("page") / "home") as running:
        yield running


class Browser:
    """One browser: its cookies, and the key that the page keeps."""

    def __init__(self, master: Master) -> None:
        self.master = master
        self.origin = str(master.client.base_url).rstrip("/")
        self.http = httpx.Client(base_url=self.origin, timeout=60, verify=False)
        self.key = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", KEY_HEADER: self.key}

    def sign_in(self, code: str = "") -> httpx.Response:
        given = {"code": code or new_code(self.master)}
        answer = self.http.post("/api/v1/session", json=given, headers={"Origin": self.origin})
        if answer.status_code == 200:
            self.key = answer.json()["key"]
        return answer

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        headers = {**self.headers, **arguments.pop("headers", {})}
        return self.http.request(
            method, path, headers={name: value for name, value in headers.items() if value}, **arguments
        )

    def status(self, **headers: str) -> int:
        return self.request("GET", "/api/v1/experiments", headers=headers).status_code


def new_code(master: Master, **ask: Any) -> str:
    """Return a code, as `det open` gets it."""
    return str(master.client.post("/api/v1/page", json=ask).json()["code"])


@pytest.fixture
def browser(master: Master) -> Iterator[Browser]:
    async def open_page() -> str:
        return str(master.client.base_url).rstrip("/")

    master.app.state.open_page = open_page
    made = Browser(master)
    made.sign_in()
    yield made
    made.http.close()


def test_the_files_are_public_hold_nothing_of_the_user_and_have_a_policy(master: Master, page_files: None) -> None:
    for path, kind in (("/", "text/html"), ("/index.html", "text/html"), ("/page.js", "text/javascript")):
        answer = httpx.get(f"{str(master.client.base_url).rstrip('/')}{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        assert "content of" in answer.text
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert "set-cookie" not in answer.headers
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        again = httpx.get(str(answer.url), headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert answer.headers["cache-control"] == "no-cache"
    assert httpx.post(f"{str(master.client.base_url).rstrip('/')}/page.js").status_code == 401


def test_a_page_that_was_not_built_says_so(master: Master, page_files: None, tmp_path: Any) -> None:
    (tmp_path / "page.css").unlink()
    assert "make setup" in master.client.get("/page.css").json()["error"]


def test_a_link_signs_one_browser_in_once(master: Master, browser: Browser) -> None:
    assert browser.status() == 200
    code = new_code(master)
    other = Browser(master)
    assert other.sign_in(code).status_code == 200
    cookie = other.http.cookies.jar
    assert [one.name for one in cookie] == [f"det-session-{httpx.URL(browser.origin).port}"]
    third = Browser(master)
    refused = third.sign_in(code)
    assert (refused.status_code, "used already" in refused.json()["error"]) == (401, True)
    assert "set-cookie" not in refused.headers
    assert other.status() == 401, "one of the two has stolen the link"
    assert browser.status() == 200
    wrong = third.sign_in("wrong")
    assert (wrong.status_code, "not valid any more" in wrong.json()["error"]) == (401, True)


def test_the_cookie_is_for_no_script_and_no_other_site(master: Master, browser: Browser) -> None:
    attributes = Browser(master).sign_in().headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=strict", "path=/"} <= set(attributes)
    assert not [each for each in attributes if each.startswith("domain")]


def test_neither_half_of_a_session_opens_anything_alone(master: Master, browser: Browser) -> None:
    assert browser.status(**{KEY_HEADER: ""}) == 401
    assert browser.status(**{KEY_HEADER: "guessed"}) == 401
    without_cookie = httpx.get(f"{browser.origin}/api/v1/experiments", headers=browser.headers)
    assert without_cookie.status_code == 401
    assert "signed out" in without_cookie.json()["error"]
    other = Browser(master)
    other.sign_in()
    assert browser.status(**{KEY_HEADER: other.key}) == 401
    # What only the cookie opens: a sign-out by another page would be a nuisance.
    assert browser.request("DELETE", "/api/v1/session", headers={KEY_HEADER: ""}).status_code == 401
    assert browser.status() == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost"},
    ],
)
def test_a_page_of_another_origin_or_port_gets_nothing_with_both_halves(
    browser: Browser, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "/api/v1/experiments"), ("POST", "/api/v1/experiments/1/kill")):
        answer = browser.request(method, path, headers=headers)
        assert answer.status_code == 403, answer.text
        assert not any(name.startswith("access-control") for name in answer.headers)
    assert browser.status() == 200
    # A browser that sends neither is an old one, or none.
    assert browser.status(Origin="", **{"Sec-Fetch-Site": ""}) == 200


def test_another_page_cannot_sign_this_browser_in(master: Master, browser: Browser) -> None:
    answer = browser.http.post(
        "/api/v1/session", json={"code": new_code(master)}, headers={"Origin": "http://evil.example"}
    )
    assert answer.status_code == 403
    assert browser.status() == 200


def test_signing_out_ends_it_for_all_tabs(browser: Browser) -> None:
    assert browser.request("GET", "/api/v1/session").json()["seconds"] > 3600
    answer = browser.request("DELETE", "/api/v1/session")
    assert answer.status_code == 204
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert browser.status() == 401


@pytest.mark.long
def test_a_stream_of_events_ends_with_its_session(master: Master, browser: Browser) -> None:
    with browser.http.stream("GET", "/api/v1/events", headers=browser.headers) as events:
        assert events.status_code == 200
        pieces = events.iter_raw()
        next(pieces)
        browser.request("DELETE", "/api/v1/session")
        master.create()  # something that happens
        assert b"experiment" not in b"".join(pieces)


def test_a_master_that_was_started_again_knows_no_session(master: Master, browser: Browser, tmp_path: Any) -> None:
    with running_master(tmp_path / "again") as again:
        headers = {KEY_HEADER: browser.key, "Cookie": "; ".join(f"{k}={v}" for k, v in browser.http.cookies.items())}
        # As if it had the same port: the name of the cookie is that of the port.
        headers["Host"] = httpx.URL(browser.origin).netloc.decode()
        answer = httpx.get(f"{str(again.client.base_url).rstrip('/')}/api/v1/experiments", headers=headers)
        assert answer.status_code == 401


def test_the_token_makes_codes_and_nothing_else_does(master: Master, browser: Browser) -> None:
    for path in ("/api/v1/page", "/api/v1/master/shutdown"):
        answer = browser.request("POST", path, json={})
        assert (answer.status_code, "is not for pages" in answer.json()["error"]) == (403, True)
    assert httpx.post(f"{browser.origin}/api/v1/page", json={}).status_code == 401
    with_token = master.client.get("/api/v1/session")
    assert (with_token.status_code, "belongs to no session" in with_token.json()["error"]) == (409, True)


# Who adds a route decides: its access in the table, and in here if no front end may use it.
NOT_FOR_PAGES = {
    "POST /api/v1/blobs",
    "POST /api/v1/blobs/missing",
    "POST /api/v1/bundles",
    "POST /api/v1/bundles/{bundle_id}/check",
    "GET /api/v1/bundles/{bundle_id}/created",
    "GET /api/v1/checkpoints/{uuid}/instead",
    "POST /api/v1/data",
    "POST /api/v1/data/contents",
    "POST /api/v1/data/find",
    "POST /api/v1/data/missing",
    "DELETE /api/v1/data/{name}",
    "POST /api/v1/environment",
    "POST /api/v1/experiments",
    "POST /api/v1/kernel-runs",
    "POST /api/v1/master/clean",
    "POST /api/v1/master/shutdown",
    "POST /api/v1/page",
    "GET /api/v1/runs/{run_id}/best",
    "POST /api/v1/runs/{run_id}/reports",
    "POST /api/v1/schedules",
    "PUT /api/v1/experiments/{experiment_id}/notebook",
    "GET /api/v1/schedules/{schedule_id}",
    "GET /api/v1/settings/notify",
    "PUT /api/v1/settings/notify",
    "DELETE /api/v1/settings/notify",
    "POST /api/v1/settings/notify/test",
    "GET /api/v1/space/settings",
    "PUT /api/v1/space/settings",
}


def test_of_every_route_it_is_decided_whether_a_session_opens_it() -> None:
    closed = {f"{route.method} {route.path}" for route in ROUTES.values() if route.access in (Access.USER, Access.RUN)}
    assert closed == NOT_FOR_PAGES
    assert not gate.is_for_pages("GET", "/api/v1/openapi.json")


@pytest.mark.long
def test_a_session_opens_no_other_route(master: Master, browser: Browser) -> None:
    for method, path in all_requests(master):
        if path.startswith("/api/") and path != "/api/v1/health" and not gate.is_for_pages(method, path):
            answer = browser.request(method, path)
            assert answer.status_code in (403, 401, 422), (method, path)
            assert answer.status_code == 403 or "introduction" in path, (method, path)
    for path in ("/api/v1/experiments/../runs/x/best", "/api/v1/experiments/%2e%2e/page"):
        assert browser.request("GET", path).status_code in (403, 404, 422)


# Who adds a field decides: in schema/forks.py and in here, if a page's session may change it. All others are closed.
OPEN_CHANGES: dict[str, Any] = {
    "name": "again",
    "description": "slower",
    "labels": ["slow"],
    "project": "vision",
    "hyperparameters": {"global_batch_size": 16},
    "searcher": {"name": "random", "max_trials": 2},
    "reproducibility": {"experiment_seed": 7},
    "scheduling_unit": 50,
    "records_per_epoch": 640,
    "min_validation_period": {"batches": 10},
    "min_checkpoint_period": {"batches": 10},
    "resources.slots_per_trial": 2,
    "resources.max_slots": 2,
    "resources.priority": 40,
    "resources.weight": 2.0,
}


def every_field() -> list[str]:
    return [
        *(name for name in ExperimentConfig.model_fields if name != "resources"),
        *(f"resources.{name}" for name in Resources.model_fields),
    ]


def test_a_session_forks_with_what_runs_nothing_field_by_field(master: Master, browser: Browser) -> None:
    number = master.create()["id"]
    assert set(OPEN_CHANGES) <= set(every_field())
    for path in every_field():
        section, _, name = path.rpartition(".")
        value = OPEN_CHANGES.get(path, "whatever")
        config = {section: {name: value}} if section else {name: value}
        answer = browser.request("POST", f"/api/v1/experiments/{number}/fork", json={"config": config})
        if path in OPEN_CHANGES:
            assert answer.status_code == 201, answer.text
            assert browser.request("POST", f"/api/v1/experiments/{answer.json()['id']}/kill").status_code == 200
        else:
            assert (answer.status_code, path in answer.json()["error"]) == (403, True), path
    # The body has no other way to a field.
    assert set(ExperimentFork.model_fields) == {"name", "config", "hyperparameters"}


def test_what_runs_code_by_a_fork_needs_the_token(master: Master, browser: Browser) -> None:
    number = master.create()["id"]
    for config in (
        {"environment": {"environment_variables": ["PYTHONPATH=/tmp/code"]}},
        {"environment": {"packages": ["code @ file:///tmp/code"]}, "labels": ["slow"]},
        {"notify": [{"webhook": "http://127.0.0.1:8888/hook"}]},
        {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}},
        {"resources": "all"},
        {"batches_per_step": 1},
    ):
        answer = browser.request("POST", f"/api/v1/experiments/{number}/fork", json={"config": config})
        assert answer.status_code == 403, answer.text
        assert "det experiment fork" in answer.json()["error"]
    variables = {"environment": {"environment_variables": ["A=1"]}}
    with_token = master.client.post(f"/api/v1/experiments/{number}/fork", json={"config": variables})
    assert with_token.status_code == 201, with_token.text


def test_the_form_of_a_session_has_the_fields_that_it_may_change(master: Master, browser: Browser) -> None:
    def open_fields(schema: dict[str, Any]) -> set[str]:
        fields = {name: field for name, field in schema["properties"].items() if name != "resources"}
        resources = schema["$defs"]["Resources"]["properties"]
        fields |= {f"resources.{name}": field for name, field in resources.items()}
        return {path for path, field in fields.items() if not field.get("readOnly")}

    ask = "/api/v1/configuration-schema"
    assert open_fields(browser.request("GET", ask).json()) == set(OPEN_CHANGES)
    assert open_fields(master.client.get(ask).json()) == set(every_field())


def test_a_ticket_downloads_one_file_once(master: Master, browser: Browser) -> None:
    number = master.create()["id"]
    address = f"/api/v1/experiments/{number}?x=1"
    made = browser.request("POST", "/api/v1/session/ticket", json={"address": address}).json()["address"]
    assert made.startswith(f"{address}&ticket=")
    assert httpx.get(browser.origin + made).status_code == 401, "without the cookie"
    assert browser.http.get(made, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert browser.http.get(made.replace("x=1", "x=2")).status_code == 401
    assert browser.http.post(made).status_code == 401
    opened = browser.http.get(made, headers={"Sec-Fetch-Site": "same-origin"})
    assert (opened.status_code, opened.json()["id"]) == (200, number)
    assert browser.http.get(made).status_code == 401
    for wrong in ("/api/v1/page", "/api/v1/runs/1/best", "/api/v1/experiments?ticket=1"):
        refused = browser.request("POST", "/api/v1/session/ticket", json={"address": wrong})
        assert refused.status_code == 400, wrong
    for wrong in ("http://evil.example/", "/", "/api/v1/experiments#x"):
        refused = browser.request("POST", "/api/v1/session/ticket", json={"address": wrong})
        assert refused.status_code == 422, wrong


def test_no_secret_is_written_down(master: Master, browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        code = new_code(master)
        other = Browser(master)
        other.sign_in(code)
        other.sign_in(code)
        other.sign_in("wrong-code-of-somebody")
        browser.request("GET", "/api/v1/session")
        [cookie] = browser.http.cookies.values()
    own = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    )
    assert not [secret for secret in (code, other.key, browser.key, cookie, "wrong-code-of") if secret in own]
