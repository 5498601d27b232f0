"""``det remote``: what a machine has, and making an environment there; a real sshd on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from small_disks import small_disk
from ssh_machine import SshMachine, running_machine

from det_native import __version__
from det_native.client.connect import connect
from det_native.client.remote.setting_up import plan
from det_native.client.remote.ssh import Done, Line
from det_native.client.remote.target import parse_target
from det_native.errors import MasterUnreachableError
from det_native.schema import routes

pytestmark = [pytest.mark.slow, pytest.mark.long]

PATIENCE = 280.0
PYTHON = "/usr/bin/python3" if os.getuid() == 0 else sys.executable
# What a machine tells of itself.
TOLD = """environment=/data/det_native_environment
home=/home/user
has={has}
pip=yes
python={python} /usr/bin/python3
"""
# As Debian's Python is where python3-venv is not installed.
WITHOUT_VENV = f"""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {PYTHON} "$@"
{PYTHON} -m venv --without-pip "$3"
echo "The virtual environment was not created successfully because ensurepip is not"
echo "available.  On Debian/Ubuntu systems, you need to install the python3-venv"
echo "package using the following command."
echo
echo "Failing command: $3/bin/python3"
exit 1
"""
# Takes what uv takes; the packages come as pip finds them.
UV = f"""#!/bin/sh
case "$1 $2" in
    "venv --seed") exec {PYTHON} -m venv "$5" ;;
    "pip install") python="$4"; shift 4 ;;
esac
[ "$1" = --reinstall-package ] && shift 2 && set -- --force-reinstall "$@"
exec "$python" -m pip install "$@"
"""


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


@pytest.fixture
def fresh(machine: SshMachine) -> Iterator[Path]:
    """A place for the environment there, without one; pip finds what this environment has, and nothing else."""
    packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages"))
    place = machine.folder / "there" / "fresh"
    with machine.configured(
        XDG_DATA_HOME=str(place), PYTHONPATH=packages, PIP_NO_INDEX="1", DET_HOME=str(machine.folder / "there" / "home")
    ):
        yield place
    shutil.rmtree(place, ignore_errors=True)


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
        assert list(found) == [
            *("connection", "system", "GPUs", "disk", "master", "packages", "torch", "tensorflow", "line")
        ]
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


class TestSetup:
    def test_it_shows_what_it_will_do_and_does_nothing_without_a_yes(self, machine: SshMachine, fresh: Path) -> None:
        for arguments, code in (("--dry-run",), 0), ((), 130):
            done = det("remote", "setup", machine.address, *arguments, answer="n\n")
            assert done.returncode == code, done.stderr
            steps = [line.split(". ", 1)[1] for line in done.stdout.splitlines() if line.startswith("  ")]
            assert [step.split()[0] for step in steps][1] == "send"
            assert steps[0].endswith(f"-m venv {fresh}/det_native_environment")
            assert f"numpy=={np_version()}" in steps[2]
            assert f"det_native-{__version__}-py3-none-any.whl" in steps[3]
        assert not (fresh / "det_native_environment").exists()

    def test_what_it_makes_is_found_and_it_can_be_run_again(
        self, machine: SshMachine, fresh: Path, tmp_path: Path
    ) -> None:
        notebook = tmp_path / "notebook.ipynb"
        notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["import numpy, torch"]}]}))
        setup = "remote", "setup", machine.address, "-y", "-n", str(notebook)
        with pytest.raises(MasterUnreachableError, match=f"`det remote setup {machine.address}`"):
            connect(machine.address)
        done = det(*setup)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"DET_MASTER={machine.address} trains there" in done.stdout
        info = connect(machine.address).call(routes.GET_MASTER)
        environment = fresh / "det_native_environment"
        assert info.python == str(environment / "bin" / "python")
        assert list(environment.glob("lib/python3*/site-packages/det_native/__init__.py"))
        assert not list(environment.glob("*.whl"))

        again = det(*setup)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "is there already; it is brought up to date" in again.stdout
        assert "A master runs there since" in again.stdout

        failed = det(*setup, "-p", "no-such-package==1.0")
        assert failed.returncode == 1
        assert "failed on" in failed.stderr
        assert "no-such-package==1.0" in failed.stderr
        assert f"then run `det remote setup {machine.address}` again" in failed.stderr

    def test_uv_is_used_where_it_is(self, machine: SshMachine, fresh: Path, tmp_path: Path) -> None:
        uv = machine.folder / "there" / ".local" / "bin" / "uv"
        uv.parent.mkdir(exist_ok=True)
        uv.write_text(UV)
        uv.chmod(0o755)
        notebook = tmp_path / "notebook.ipynb"
        notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["import numpy"]}]}))
        try:
            done = det("remote", "setup", machine.address, "-y", "-n", str(notebook))
            assert done.returncode == 0, done.stdout + done.stderr
            again = det("remote", "setup", machine.address, "-y", "-n", str(notebook))
            assert "it is brought up to date" in again.stdout
        finally:
            uv.unlink()
        steps = [line.split(". ", 1)[1] for line in done.stdout.splitlines() if line.startswith("  ")]
        environment = fresh / "det_native_environment"
        version = ".".join(map(str, sys.version_info[:2]))
        assert steps[0] == f"{uv} venv --seed --python {version} {environment}"
        assert steps[2].startswith(f"{uv} pip install --python {environment}/bin/python ")
        assert connect(machine.address).call(routes.GET_MASTER).python == str(environment / "bin" / "python")

    def test_an_environment_that_was_left_half_made_is_made_anew(
        self, machine: SshMachine, fresh: Path, tmp_path: Path
    ) -> None:
        programs = machine.folder / "programs"
        programs.mkdir()
        for name in ("python3.11", "python3.12", "python3.13", "python3", "python"):
            (programs / name).write_text(WITHOUT_VENV)
            (programs / name).chmod(0o755)
        notebook = tmp_path / "notebook.ipynb"
        notebook.write_text(json.dumps({"cells": []}))
        setup = "remote", "setup", machine.address, "-y", "-n", str(notebook)
        packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages"))
        with machine.configured(
            PATH=f"{programs}:{os.environ['PATH']}", XDG_DATA_HOME=str(fresh), PYTHONPATH=packages, PIP_NO_INDEX="1"
        ):
            failed = det(*setup)
            assert failed.returncode == 1
            assert "cannot make environments: install its package there" in failed.stderr
            assert "python3-venv" in failed.stderr
            assert (fresh / "det_native_environment" / "bin" / "python").exists()
            for program in programs.iterdir():
                program.unlink()
            (programs / "python3").symlink_to(PYTHON)
            done = det(*setup)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "is not complete: it is made anew" in done.stdout

    def test_nothing_to_make_it_with_is_told(self, machine: SshMachine, fresh: Path) -> None:
        few = machine.folder / "few"
        few.mkdir()
        for name in ("sh", "df", "tail", "awk", "dirname", "head"):
            (few / name).symlink_to(str(shutil.which(name)))
        with machine.configured(PATH=str(few), XDG_DATA_HOME=str(fresh)):
            done = det("remote", "setup", machine.address, "-y")
        assert done.returncode == 1
        assert "There is no uv and no Python 3.11 or newer on" in done.stderr
        assert "installs uv, which brings its own Python" in done.stderr

    def test_a_disk_that_is_by_far_too_small_is_told_before_anything_is_made(self, machine: SshMachine) -> None:
        with small_disk(machine.folder / "small", size="1m") as disk:
            os.chown(disk.path, machine.user.pw_uid, machine.user.pw_gid)
            with machine.configured(XDG_DATA_HOME=str(disk.path)):
                done = det("remote", "setup", machine.address, "-y")
            assert list(disk.path.iterdir()) == []
        assert done.returncode == 1
        assert f"The disk of {machine.user.pw_name}@127.0.0.1 is full: The packages take " in done.stderr
        assert "MB are free there. Make room there, then run `det remote setup" in done.stderr

    def test_a_disk_that_becomes_full_is_as_it_was(self, machine: SshMachine, tmp_path: Path) -> None:
        notebook = tmp_path / "notebook.ipynb"
        notebook.write_text(json.dumps({"cells": []}))
        packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages"))
        with small_disk(machine.folder / "filling", size="12m") as disk:
            os.chown(disk.path, machine.user.pw_uid, machine.user.pw_gid)
            free = disk.free
            uv = machine.folder / "there" / ".local" / "bin" / "uv"  # links packages, so that the disk may do
            uv.parent.mkdir(parents=True, exist_ok=True)
            uv.write_text(UV)
            uv.chmod(0o755)
            try:
                with machine.configured(XDG_DATA_HOME=str(disk.path), PYTHONPATH=packages, PIP_NO_INDEX="1"):
                    done = det("remote", "setup", machine.address, "-y", "-n", str(notebook))
            finally:
                uv.unlink()
            assert free - disk.free < 100_000
        assert "they may not fit" in done.stdout
        assert "1. " in done.stderr
        assert done.returncode == 1
        assert f"The disk of {machine.user.pw_name}@127.0.0.1 is full: Make room there" in done.stderr


class TestPlan:
    """What is planned, of a machine that is told in a few words."""

    def test_an_environment_of_the_only_python_there_is_kept(self, tmp_path: Path) -> None:
        there = TOLD.format(has="3.99", python="3.99")
        steps, notes = planned(there, tmp_path)
        assert not any("venv" in step.split() for step in steps)
        assert "is there already; it is brought up to date" in notes[0]
        assert "Python there is 3.99, here" in notes[1]

    def test_one_of_another_python_is_made_anew(self, tmp_path: Path) -> None:
        here = ".".join(map(str, sys.version_info[:2]))
        steps, notes = planned(TOLD.format(has="3.99", python=here), tmp_path)
        assert steps[0].endswith("-m venv /data/det_native_environment")
        assert f"has Python 3.99, not {here}: it is made anew, and what still runs in it fails" in notes[0]

    def test_one_that_does_not_run_is_made_anew(self, tmp_path: Path) -> None:
        here = ".".join(map(str, sys.version_info[:2]))
        steps, notes = planned(TOLD.format(has="", python=here).replace("pip=yes\n", ""), tmp_path)
        assert steps[0].endswith("-m venv /data/det_native_environment")
        assert "is not complete: it is made anew" in notes[0]


def planned(told: str, folder: Path) -> tuple[list[str], Sequence[str]]:
    """Return the steps and notes of a machine that has told this."""
    line = cast(Line, SimpleNamespace(target=parse_target("ssh://box"), run=lambda *_, **__: Done(0, told, "")))
    found = plan(line, ["numpy==1.0"], folder)
    return [step.text for step in found.steps], found.notes


def np_version() -> str:
    """Return the version of numpy here."""
    import numpy

    return numpy.__version__
