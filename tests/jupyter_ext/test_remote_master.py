"""JupyterLab's side of a master that is reached by SSH: a real sshd on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jupyter_parts import Jupyter
from ssh_machine import SshMachine, running_machine

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def shared_machine() -> Iterator[SshMachine]:
    """The machine."""
    with running_machine() as machine:
        yield machine


@pytest.fixture
def machine(shared_machine: SshMachine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    """The machine as this test's server reaches it."""
    monkeypatch.setenv("DET_MASTER", shared_machine.address)
    with shared_machine.as_seen_here(monkeypatch) as seen:
        yield seen


async def test_it_is_started_and_found_over_ssh_and_again_after_a_cut(machine: SshMachine, jupyter: Jupyter) -> None:
    status = await jupyter.until(lambda found: found["state"] != "starting")
    assert (status["state"], status["can_start"]) == ("none", True)
    assert "No master runs on" in status["message"]
    assert (await jupyter.post("start")).status_code == 200
    status = await jupyter.until(lambda found: found["state"] not in ("starting", "none"))
    assert status["state"] == "running", status
    assert status["master"]["url"] == machine.address
    found = await jupyter.get("master/experiments")
    assert (found.status_code, found.json()) == (200, [])
    assert machine.cut()
    await jupyter.until(lambda found: found["state"] == "running")
    assert (await jupyter.get("master/experiments")).status_code == 200


async def test_what_is_in_the_way_is_said(machine: SshMachine, jupyter: Jupyter) -> None:
    keys = machine.folder / "authorized_keys"
    kept = keys.read_text()
    keys.write_text("")
    try:
        status = await jupyter.until(lambda found: found["state"] != "starting")
    finally:
        keys.write_text(kept)
    assert (status["state"], status["can_start"]) == ("unauthorised", False)
    assert "accepts none of your SSH keys" in status["message"]
    assert (await jupyter.get("master/experiments")).status_code == 503


@pytest.mark.parametrize("extension_settings", [{"master": "ssh://gpu-box"}], indirect=True)
async def test_the_settings_of_the_server_name_it(machine: SshMachine, jupyter: Jupyter) -> None:
    status = await jupyter.until(lambda found: found["state"] != "starting")
    assert status["state"] in ("running", "none", "unauthorised")
    assert "gpu-box" in status["message"]
