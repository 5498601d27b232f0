"""``det remote``: what a machine has, and making an environment there; a real sshd on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from ssh_machine import SshMachine, running_machine

from det_native import __version__
from det_native.client.connect import connect

pytestmark = [pytest.mark.slow, pytest.mark.long]

PATIENCE = 280.0


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


def det(*arguments: str, answer: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "det_native.client.command", *arguments],
        input=answer,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **variables},
    )


class TestCheck:
    def test_it_tells_what_is_there(self, machine: SshMachine) -> None:
        done = det("remote", "check", machine.address)
        assert done.returncode == 0, done.stdout + done.stderr
        found = {line[3:].split()[0]: line for line in done.stdout.splitlines()}
        assert list(found) == ["connection", "system", "GPUs", "disk", "master", "packages", "line"]
        assert "Linux" in found["system"]
        assert f"free in {machine.home_there.path}" in found["disk"]
        assert "No master runs on" in found["master"]
        assert f"numpy {np_version()}" in found["packages"]
        assert found["line"].count("MB/s") == 2
        assert machine.connection().standing() is None, "it leaves no connection of its own"

        connect(machine.address)
        again = det("-m", machine.address, "remote", "check")
        assert f"runs, version {__version__}" in again.stdout
        assert machine.connection().standing() is not None, "nor closes one of others"
        assert "Disconnected" in det("remote", "disconnect", machine.address).stdout
        assert "There was no connection" in det("remote", "disconnect", machine.address).stdout

    def test_it_tells_what_is_missing(self, machine: SshMachine) -> None:
        done = det("remote", "check", f"{machine.address}?python=/no/python")
        assert done.returncode == 1
        assert "NO  det_native  There is no Python /no/python on" in done.stdout

    def test_it_wants_an_address(self, machine: SshMachine) -> None:
        assert "set DET_MASTER" in det("remote", "check").stderr
        assert "is no address of the form" in det("remote", "check", "http://localhost:1").stderr


def np_version() -> str:
    """Return the version of numpy here."""
    import numpy

    return numpy.__version__
