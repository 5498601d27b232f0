"""What the server extension says to another user's process that has taken the place of the master: nothing secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jupyter_parts import Jupyter, MasterProcess
from ssh_machine import free_port
from stranger import needs_another_user, stranger

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

TOKEN = "a-token-that-nobody-must-hear"


async def test_who_has_the_port_hears_no_token(
    jupyter: Jupyter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("DET_MASTER", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("DET_TOKEN", TOKEN)
    with stranger(port, tmp_path) as impostor:
        for _ in range(3):
            status = await jupyter.status()
            assert status["state"] == "unreachable"
            assert "does not know our token" in status["message"]
            assert (await jupyter.get("master/experiments")).status_code == 503
        assert (await jupyter.post("master/experiments/1/kill")).status_code == 503
        assert impostor.heard.count("GET /api/v1/introduction") >= 7
        for secret in (TOKEN, "uthorization", "proof"):
            assert secret not in impostor.heard


async def test_who_has_a_socket_and_is_another_user_is_told_nothing(
    jupyter: Jupyter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_another_user()
    folder = Path(f"/tmp/det-lab-{os.getpid()}")
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("DET_MASTER", f"unix:{folder}/master.sock")
    monkeypatch.setenv("DET_TOKEN", TOKEN)
    try:
        with stranger(folder / "master.sock", tmp_path) as impostor:
            status = await jupyter.status()
            assert status["state"] == "unreachable"
            assert "is of user 65534" in status["message"]
            assert (await jupyter.get("master/experiments")).status_code == 503
            assert impostor.heard == ""
    finally:
        folder.rmdir()


async def test_a_master_with_a_port_is_reached_by_it(
    jupyter: Jupyter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    home = Home(tmp_path / "home")
    tcp = MasterProcess.start(home, "--port", str(port))
    monkeypatch.setenv("DET_HOME", str(home.path))
    monkeypatch.setenv("DET_MASTER", f"http://127.0.0.1:{port}")
    try:
        assert (await jupyter.status())["state"] == "running"
        number = tcp.experiment()
        answer = await jupyter.get(f"master/experiments/{number}")
        assert answer.json()["id"] == number
        async with jupyter.events() as events:
            assert await events.take(1)
    finally:
        tcp.stop()
