"""``det up --service``: the unit, what is run with it, here and over SSH; ``systemctl`` is stood in for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ssh_machine import running_machine

from det_native.client.service import plan_service
from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow

PATIENCE = 120.0
# Notes what it is told, and starts what the unit says.
SYSTEMCTL = """#!/bin/sh
[ "$*" = "--user show-environment" ] && exit
echo "systemctl $*" >> "{log}"
case "$*" in
    *"enable --now"*)
        for last; do :; done
        unit="${{XDG_CONFIG_HOME:-$HOME/.config}}/systemd/user/$last"
        command="$(sed -n 's/^ExecStart=//p' "$unit")"
        eval "setsid $command </dev/null >/dev/null 2>&1 &" ;;
esac
"""
LOGINCTL = """#!/bin/sh
echo "loginctl $*" >> "{log}"
"""
NO_BUS = """#!/bin/sh
echo "Failed to connect to bus: No medium found" >&2
exit 1
"""


def programs(folder: Path, systemctl: str = SYSTEMCTL, loginctl: str = LOGINCTL) -> Path:
    """Make both programs in a folder; returns their log."""
    folder.mkdir()
    for name, text in (("systemctl", systemctl), ("loginctl", loginctl)):
        (folder / name).write_text(text.format(log=folder / "log") if "{log}" in text else text)
        (folder / name).chmod(0o755)
    (folder / "log").touch()
    (folder / "log").chmod(0o666)
    return folder / "log"


class Machine:
    """This machine, with a home and settings of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder / "home")
        self.units = folder / "config" / "systemd" / "user"

    def det(self, *arguments: str, answer: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        settings = {"DET_HOME": str(self.home.path), "XDG_CONFIG_HOME": str(self.folder / "config")}
        return subprocess.run(
            [sys.executable, "-m", "det_native.client.command", *arguments],
            input=answer,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **settings, **variables},
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The machine, whose ``systemctl`` is not made yet."""
    return Machine(tmp_path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_unit_whatever_is_in_its_paths(tmp_path: Path) -> None:
    home = Home(tmp_path / 'a "b" 100% $HOME')
    home.path.mkdir()
    environment = {"PATH": '/bin:/a b/"c"/100%', "DET_SLOTS": "cpu:2", "DET_TOKEN": "secret", "HOME": "/none"}
    planned = plan_service(home, ["--port", "8080"], environment)
    path = tmp_path / planned.name
    path.write_text(planned.text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert "secret" not in planned.text
    assert 'Environment="DET_SLOTS=cpu:2"' in planned.text
    assert '"--port" "8080"' in planned.text
    assert "KillMode=process" in planned.text, "running trials live on"


def test_homes_have_units_of_their_own(tmp_path: Path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    usual = plan_service(Home(tmp_path / "det_native"), (), environment)
    other = plan_service(Home(tmp_path / "other"), (), environment)
    assert usual.path == tmp_path / "config" / "systemd" / "user" / "det-native.service"
    assert other.name.startswith("det-native-")


def test_it_is_shown_first_and_nothing_is_written_without_a_yes(machine: Machine) -> None:
    log = programs(machine.folder / "bin")
    done = machine.det("up", "--service", answer="n\n")
    assert done.returncode == 130
    assert f"{machine.units}/det-native-" in done.stdout
    assert "[Service]" in done.stdout
    assert "systemctl --user enable --now det-native-" in done.stdout
    assert not machine.units.exists()
    assert log.read_text() == ""
    assert read_runtime(machine.home) is None


def test_systemd_starts_the_master_now_and_after_each_boot(machine: Machine) -> None:
    log = programs(machine.folder / "bin")
    done = machine.det("up", "--service", "--slots", "cpu:3", answer="y\n")
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        [unit] = machine.units.iterdir()
        assert log.read_text().splitlines() == [
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {unit.name}",
            "loginctl enable-linger",
        ]
        assert "The master runs, and systemd starts it after each boot." in done.stdout
        assert f"systemctl --user disable {unit.name} && rm " in done.stdout
        assert "0 of 3 busy" in machine.det("status").stdout
        again = machine.det("up", "--service", "-y")
        assert "The master that runs goes on" in again.stdout
        assert log.read_text().splitlines()[-2] == f"systemctl --user enable {unit.name}"
        command = next(text for text in unit.read_text().splitlines() if text.startswith("ExecStart="))
        second = subprocess.run(["sh", "-c", command.partition("=")[2]], capture_output=True, check=False)
        assert second.returncode == 4, "systemd does not try again while another master has the home"
        assert "RestartPreventExitStatus=2 4" in unit.read_text()
    finally:
        assert "has stopped" in machine.det("down").stdout


def test_passwords_are_kept_by_the_home_and_not_by_the_unit(machine: Machine) -> None:
    programs(machine.folder / "bin")
    url = "smtp://me:mail-word@127.0.0.1:2525?from=det@example.org"
    done = machine.det("up", "--service", "-y", DET_SMTP_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        [unit] = machine.units.iterdir()
        assert "mail-word" not in unit.read_text() + done.stdout + done.stderr
        told = machine.det("notify", "set", "--email", "me@example.org")
        assert (told.returncode, told.stderr) == (0, ""), "the master that systemd has started knows its mail server"
    finally:
        machine.det("down")


@pytest.mark.long
def test_without_systemd_for_this_user_it_is_said_with_what_does_it(machine: Machine) -> None:
    programs(machine.folder / "bin", systemctl=NO_BUS)
    done = machine.det("up", "--service", "--slots", "2", CUDA_VISIBLE_DEVICES="3 %4")
    assert (done.returncode, done.stdout) == (1, ""), "it is said before the plan, and nothing is asked"
    assert "show-environment` says: Failed to connect to bus" in done.stderr
    assert not machine.units.exists()
    line = done.stderr.strip().partition("@reboot ")[2]
    assert line.endswith(f"-m det_native.master --home {machine.home.path} --slots 2 >> {machine.home.log} 2>&1")
    assert r"CUDA_VISIBLE_DEVICES='3 \%4' " in line
    assert f"PATH={machine.folder / 'bin'}:" in line
    # What cron makes of it starts the master.
    environment = {"HOME": str(machine.folder), "SHELL": "/bin/sh"}
    with subprocess.Popen(["/bin/sh", "-c", line.replace("\\%", "%")], env=environment, start_new_session=True):
        deadline = time.monotonic() + PATIENCE
        while read_runtime(machine.home) is None:
            assert time.monotonic() < deadline, machine.home.log.read_text()
            time.sleep(0.05)
        try:
            assert "0 of 2 busy" in machine.det("status").stdout
        finally:
            machine.det("down", "--kill")


@pytest.mark.long
def test_a_user_who_may_not_linger_is_told(machine: Machine) -> None:
    programs(machine.folder / "bin", loginctl="#!/bin/sh\necho Access denied >&2\nexit 1\n")
    try:
        done = machine.det("up", "--service", "-y")
        assert done.returncode == 0, done.stderr
        assert "`loginctl enable-linger` says: Access denied. `sudo loginctl enable-linger " in done.stderr
    finally:
        machine.det("down")


@pytest.mark.long
def test_a_login_node_of_slurm_is_said(machine: Machine) -> None:
    programs(machine.folder / "bin")
    for name, text in (("sinfo", "#!/bin/sh\n"), ("scontrol", "#!/bin/sh\nexit 1\n")):
        (machine.folder / "bin" / name).write_text(text)
        (machine.folder / "bin" / name).chmod(0o755)
    done = machine.det("up", "--service", answer="n\n")
    assert "Warning: This is a login node of Slurm" in done.stderr
    assert "Slurm" not in machine.det("up", "--service", answer="n\n", SLURM_JOB_ID="7").stderr


@pytest.mark.long
def test_over_ssh_it_is_the_machine_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_machine() as there, there.as_seen_here(monkeypatch):
        log = programs(there.folder / "stand-ins")
        path = f"{there.folder / 'stand-ins'}:{os.environ['PATH']}"
        units = there.folder / "there" / "config" / "systemd" / "user"
        here = Machine(tmp_path)
        with there.configured(PATH=path, XDG_CONFIG_HOME=str(units.parents[1])):
            asked = here.det("-m", there.address, "up", "--service", answer="n\n")
            assert asked.returncode == 130, asked.stderr
            assert not units.exists()
            done = here.det("-m", there.address, "up", "--service", "--yes")
            assert done.returncode == 0, done.stdout + done.stderr
            refused = here.det("-m", there.address, "up", "--service", "--slots", "2")
            status = here.det("-m", there.address, "status")
            here.det("remote", "disconnect", there.address)
        [unit] = units.iterdir()
        assert f"On {there.user.pw_name}@127.0.0.1:" in asked.stdout
        assert str(unit) in done.stdout
        assert f'ExecStart="{there.python}"' in unit.read_text()
        assert f'"--home" "{there.home_there.path}"' in unit.read_text()
        assert "loginctl enable-linger" in log.read_text()
        assert "0 of 2 busy" in status.stdout
        assert "--slots is for a master on this machine only" in refused.stderr
