"""How the master looks from Jupyter, and starting it there: real masters, or something real that is none."""

from __future__ import annotations

import asyncio
import http.server
import json
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_parts import Jupyter, MasterProcess

from det_native import PROTOCOL, __version__
from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow


@contextmanager
def answering(body: bytes, status: int = 200, *, at: Path | None = None, **headers: str) -> Iterator[str]:
    """Serve the same answer to every request, at a port or a socket; gives the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class AtSocket(http.server.ThreadingHTTPServer):
        address_family = socket.AF_UNIX
        server_bind = socketserver.TCPServer.server_bind  # HTTP's own wants a host and a port

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) if at is None else AtSocket(str(at), Handler)  # type: ignore[arg-type]
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}" if at is None else f"unix:{at}"
        finally:
            server.shutdown()
            thread.join()


def said(status: dict[str, Any]) -> bool:
    """Whether there is something to read in it."""
    return bool(status["message"]) and status["version"] == __version__ and status["protocol"] == PROTOCOL


async def test_a_running_master_is_named(jupyter: Jupyter, master: MasterProcess) -> None:
    status = await jupyter.status()
    assert status["state"] == "running"
    assert status["master"] == {"url": master.runtime.url, "version": __version__, "protocol": PROTOCOL}
    assert said(status)
    assert not status["can_start"]


async def test_without_a_master_one_can_be_started_and_is_ready_soon_even_where_a_start_has_failed(
    jupyter: Jupyter, empty_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await jupyter.status()
    assert before["state"] == "none"
    assert before["can_start"]
    assert before["remedy"]
    refused = await jupyter.get("master/experiments")
    assert refused.status_code == 503
    assert refused.json() == before

    monkeypatch.setenv("DET_SLOTS", "many")
    await jupyter.post("start")
    failed = await jupyter.until(lambda found: found["state"] != "starting")
    assert failed["state"] == "none"
    assert "many" in failed["message"]
    assert failed["can_start"]

    monkeypatch.setenv("DET_SLOTS", "cpu:1")
    first, second = await asyncio.gather(jupyter.post("start"), jupyter.post("start"))
    assert first.status_code == second.status_code == 200
    assert first.json()["state"] == "starting"
    assert (await jupyter.get("master/experiments")).json()["state"] == "starting"
    status = await jupyter.until(lambda found: found["state"] != "starting")
    assert status["state"] == "running"
    runtime = read_runtime(empty_home)
    assert runtime is not None
    assert status["master"]["url"] == runtime.url
    assert (await jupyter.post("start")).json() == status
    assert (await jupyter.get("master/experiments")).json() == []


async def test_a_wrong_token_is_told_from_an_absent_master(
    jupyter: Jupyter, master: MasterProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_MASTER", master.runtime.url)
    monkeypatch.setenv("DET_TOKEN", "wrong")
    status = await jupyter.status()
    assert status["state"] == "unauthorised"
    assert "DET_TOKEN" in status["remedy"]
    answer = await jupyter.get("master/experiments")
    assert answer.status_code == 503
    assert answer.json() == status


async def test_a_wrong_token_in_the_home_is_not_blamed_on_a_variable(jupyter: Jupyter, master: MasterProcess) -> None:
    right = master.token
    master.home.token.write_text("wrong")
    status = await jupyter.status()
    master.home.token.write_text(right)
    assert status["state"] == "unauthorised"
    assert "`det down`" in status["remedy"]
    assert "DET_" not in status["remedy"]
    assert (await jupyter.status())["state"] == "running"


async def test_a_runtime_file_that_names_another_server_is_said(jupyter: Jupyter, master: MasterProcess) -> None:
    with answering(b"<html>", at=master.home.path / "other") as url:
        moved = master.runtime.model_copy(update={"url": url})
        master.home.runtime.write_text(moved.model_dump_json())
        status = await jupyter.status()
    master.home.runtime.write_text(master.runtime.model_dump_json())
    assert status["state"] == "unreachable"
    assert f"What answers at {url} is no det_native master" in status["message"]
    assert "`runtime.json`" in status["remedy"]
    assert "DET_MASTER" not in status["remedy"]


async def test_an_older_master_at_a_port_is_told_nothing(jupyter: Jupyter, master: MasterProcess) -> None:
    moved = master.runtime.model_copy(update={"url": "http://127.0.0.1:9", "version": "0.0.1"})
    master.home.runtime.write_text(moved.model_dump_json())
    status = await jupyter.status()
    master.home.runtime.write_text(master.runtime.model_dump_json())
    assert status["state"] == "mismatch"
    assert "version 0.0.1" in status["message"]
    assert "`det down` and `det up`" in status["message"]


async def test_a_master_elsewhere_needs_a_token(jupyter: Jupyter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_MASTER", "https://master.example:8443")
    status = await jupyter.status()
    assert status["state"] == "unauthorised"
    assert "DET_TOKEN" in status["message"]


@pytest.mark.parametrize("url", ["http://master.example", "https://user:secret@master.example", "nonsense://x"])
async def test_an_address_that_cannot_be_used_is_explained(
    jupyter: Jupyter, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DET_MASTER", url)
    monkeypatch.setenv("DET_TOKEN", "token")
    status = await jupyter.status()
    assert status["state"] == "unreachable"
    assert "DET_MASTER" in status["remedy"]
    assert "secret" not in json.dumps(status)


async def test_another_protocol_is_a_mismatch_that_names_both(
    jupyter: Jupyter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_TOKEN", "token")
    for protocol, word in ((PROTOCOL - 1, "det up"), (PROTOCOL + 1, "pip install")):
        with answering(json.dumps({"status": "ok", "version": "9.9.9", "protocol": protocol}).encode()) as url:
            monkeypatch.setenv("DET_MASTER", url)
            status = await jupyter.status()
            assert status["state"] == "mismatch"
            assert "9.9.9" in status["message"]
            assert __version__ in status["message"]
            assert word in status["remedy"]
            assert status["master"] == {"url": url, "version": "9.9.9", "protocol": protocol}
            assert (await jupyter.get("master/experiments")).json() == status


async def test_what_is_no_master_is_not_taken_for_one(jupyter: Jupyter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_TOKEN", "token")
    for arguments in ({"body": b"<html>"}, {"body": b"", "status": 302, "Location": "http://127.0.0.1:1/"}):
        with answering(**arguments) as url:  # type: ignore[arg-type]
            monkeypatch.setenv("DET_MASTER", url)
            status = await jupyter.status()
            assert status["state"] == "unreachable"
            assert "no det_native master" in status["message"]
            assert "DET_MASTER" in status["remedy"]


async def test_nobody_at_the_named_address(jupyter: Jupyter, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(b"") as url:
        pass
    monkeypatch.setenv("DET_MASTER", url)
    monkeypatch.setenv("DET_TOKEN", "token")
    status = await jupyter.status()
    assert status["state"] == "unreachable"
    assert url in status["message"]
    started = await jupyter.post("start")
    assert started.status_code == 409
    assert started.json() == status


@pytest.mark.parametrize("extension_settings", [{"status_seconds": 0.3}], indirect=True)
async def test_a_master_that_hangs_is_unreachable_until_it_goes_on(jupyter: Jupyter, master: MasterProcess) -> None:
    master.signal(signal.SIGSTOP)
    try:
        status = await jupyter.status()
    finally:
        master.signal(signal.SIGCONT)
    assert status["state"] == "unreachable"
    assert not status["can_start"]
    assert (await jupyter.until(lambda found: found["state"] == "running"))["master"]


async def test_a_stranger_is_refused_on_every_route(jupyter: Jupyter, master: MasterProcess) -> None:
    async with httpx.AsyncClient(base_url=str(jupyter.client.base_url)) as stranger:
        for method, path in [
            *(("GET", path) for path in ("status", "master/health", "master/experiments", "master/events")),
            *(
                ("POST", path)
                for path in ("start", "master/experiments/1/kill", "notebook-runs", "notebook-runs/1/stop")
            ),
        ]:
            answer = await stranger.request(method, path, json={} if method == "POST" else None)
            assert answer.status_code == 403, f"{method} {path}"
            assert "version" not in answer.json()


async def test_a_page_of_another_site_cannot_act_with_the_users_cookie(jupyter: Jupyter, master: MasterProcess) -> None:
    number = master.experiment()
    paths = ["start", f"master/experiments/{number}/kill", "notebook-runs"]
    async with httpx.AsyncClient(base_url=str(jupyter.client.base_url)) as browser:
        await browser.get(f"{jupyter.base}login")
        form = {"password": jupyter.token, "_xsrf": browser.cookies["_xsrf"]}
        assert (await browser.post(f"{jupyter.base}login", data=form)).status_code == 302
        assert (await browser.get("status")).json()["state"] == "running"
        for path in paths:
            assert (await browser.post(path, json={})).status_code == 403, path
        header = {"X-XSRFToken": browser.cookies["_xsrf"]}
        assert (await browser.post(paths[1], headers=header)).status_code == 200
        foreign = {**header, "Origin": "https://elsewhere.example"}
        assert (await browser.post(paths[1], headers=foreign)).status_code in (403, 404)
