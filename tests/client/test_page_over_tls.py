"""Signing in at the page of a real master with TLS: what its cookie is, and what it opens."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from ssh_machine import free_port
from test_tcp_on_bad_network import START, certificate

from det_native.client.home import read_token
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.page import KEY_HEADER, PageAsk
from det_native.schema.processes import wait_until_gone

pytestmark = [pytest.mark.slow, pytest.mark.long]

PATIENCE = 120.0


def test_by_tls_the_cookie_is_secure_and_of_this_host_alone(
    tmp_path: Path,
) -> None:
    made, key = certificate(tmp_path)
    home, port = Home(tmp_path / "home"), free_port()
    options = ["--port", str(port), "--host", "localhost", "--tls-cert", str(made), "--tls-key", str(key)]
    subprocess.run(
        [sys.executable, "-c", START, str(home.path), *options], env={**os.environ, "DET_SLOTS": "cpu:1"}, check=True
    )
    runtime, token = read_runtime(home), str(read_token(home))
    assert runtime is not None
    origin = f"https://localhost:{port}"
    try:
        with contextlib.closing(Session(runtime.url, token)) as session:
            code = session.call(routes.OPEN_PAGE, PageAsk())
        assert code.url == runtime.tcp == origin
        with httpx.Client(base_url=f"{origin}/api/v1", verify=ssl.create_default_context(cafile=str(made))) as browser:
            browser.headers["Origin"] = origin
            answer = browser.post("/session", json={"code": code.code})
            assert answer.status_code == 200, answer.text
            pair, *attributes = answer.headers["set-cookie"].split("; ")
            assert pair.partition("=")[0] == f"__Host-det-session-{port}"
            assert {each.lower() for each in attributes} >= {"secure", "httponly", "path=/", "samesite=strict"}
            assert not [each for each in attributes if each.lower().startswith("domain")]
            browser.headers[KEY_HEADER] = answer.json()["key"]
            assert browser.get("/master").json()["pid"] == runtime.pid
            # An origin without TLS is another one, although host and port are the same.
            assert browser.get("/master", headers={"Origin": origin.replace("https", "http")}).status_code == 403
            # A cookie without the prefix could be set by another port or without TLS: it is none.
            cookie = pair.partition("=")[2]
            browser.cookies.clear()
            assert browser.get("/master", headers={"Cookie": f"det-session-{port}={cookie}"}).status_code == 401
            assert browser.get("/master", headers={"Cookie": pair}).status_code == 200
            gone = browser.delete("/session", headers={"Cookie": pair})
            assert gone.status_code == 204
            assert gone.headers["set-cookie"].startswith(f"__Host-det-session-{port}=")
            assert browser.get("/master", headers={"Cookie": pair}).status_code == 401
    finally:
        with contextlib.closing(Session(runtime.url, token)) as session:
            session.call(routes.SHUT_DOWN, kill=True)
        assert wait_until_gone(runtime.pid, runtime.start, PATIENCE)
