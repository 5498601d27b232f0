"""The master's page through SSH: a forwarded port, which ends with the connection, and sessions that end before it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from ssh_machine import SshMachine, running_machine

from det_native.client.connect import connect
from det_native.client.page_link import page_link
from det_native.schema import routes
from det_native.schema.page import KEY_HEADER

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def shared_machine() -> Iterator[SshMachine]:
    """A machine with a master that the tests share."""
    with running_machine() as machine:
        yield machine


@pytest.fixture
def machine(shared_machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """The machine as this test reaches it."""
    with shared_machine.as_seen_here(monkeypatch) as seen:
        yield seen


class Browser:
    """A browser that has opened a link."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.origin = f"http://{parts.netloc}"
        self.http = requests.Session()
        self.http.trust_env = False
        found = parse_qs(parts.fragment)
        self.to = found["to"]
        answer = self.http.post(f"{self.origin}/api/v1/session", json={"code": found["signin"][0]}, timeout=60)
        assert answer.status_code == 200, answer.text
        self.http.headers.update({KEY_HEADER: answer.json()["key"], "Origin": self.origin})

    def get(self, path: str, origin: str = "") -> requests.Response:
        return self.http.get(f"{origin or self.origin}/api/v1{path}", timeout=60)


def test_a_browser_here_reaches_the_page_there_for_as_long_as_the_connection_stands(machine: SshMachine) -> None:
    session = connect(machine.address)
    first = Browser(page_link(session, "/experiments/7"))
    assert first.to == ["/experiments/7"]
    assert first.get("/master").json()["pid"] == machine.master.pid
    assert requests.get(f"{first.origin}/api/v1/master", timeout=60).status_code == 401
    assert requests.get(f"{first.origin}/", timeout=60).status_code in (200, 404), "404 where it was not built"

    second = Browser(page_link(session, "/experiments"))
    assert second.origin == first.origin, "the port stands"
    assert first.get("/master").status_code == second.get("/master").status_code == 200

    assert machine.cut()
    with pytest.raises(requests.ConnectionError):
        first.get("/master")
    # Whoever has listened at the port meanwhile has both halves of the sessions: they open nothing at the next.
    assert session.call(routes.GET_MASTER).pid == machine.master.pid
    assert session.route is not None
    with pytest.raises(requests.ConnectionError):
        first.get("/master")
    third = Browser(page_link(session, "/experiments"))
    assert third.origin == first.origin, "the page that is open finds its master again"
    assert third.get("/master").status_code == 200
    first.http.headers["Origin"] = third.origin
    assert first.get("/master", third.origin).status_code == 401

    assert machine.connection().close()
    with pytest.raises(requests.ConnectionError):
        third.get("/master")


def test_a_master_that_was_started_again_there_is_reached_by_a_new_link(machine: SshMachine) -> None:
    session = connect(machine.address)
    before = Browser(page_link(session, "/experiments"))
    assert machine.connection().stop(kill=False)
    session = connect(machine.address)
    after = Browser(page_link(session, "/experiments"))
    assert after.get("/master").json()["pid"] == machine.master.pid
    before.http.headers["Origin"] = after.origin
    assert before.get("/master", after.origin).status_code == 401
