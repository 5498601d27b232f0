"""A machine that is reached by SSH: a real sshd on loopback, with another home, environment and, for root, user."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from det_native.client.remote.link import Connection, Link
from det_native.client.remote.target import parse_target
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.processes import start_mark, wait_until_gone

PATIENCE = 120.0
_SYSTEM_PYTHON = "/usr/bin/python3"
_USER_PREFIX = "det-ssh-"
# Starts a command and says its number; it is no child of the tests, which may end it and start it again.
_AS_AN_ORPHAN = ["sh", "-c", '"$@" < /dev/null > /dev/null 2>&1 & echo $!', "sh"]

_SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
MaxSessions 50
SetEnv {variables}
{more}
"""
_SSH_CONFIG = """
Host gpu-box
    HostName 127.0.0.1
    Port {port}
Host *
    IdentityFile {folder}/key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
"""


class SshMachine:
    """The machine, and this user's side of the way to it.

    Attributes
    ----------
    address : str
        ``ssh://user@127.0.0.1:port``.
    folder : Path
        Everything of it, in a short place that other users can enter.
    """

    def __init__(self, folder: Path, user: pwd.struct_passwd, *, other: bool) -> None:
        self.folder = folder
        self.user = user
        self.other_user = other
        self.home_there = Home(folder / "there" / "det")
        self.python = folder / "there" / ".local/share/det_native_environment/bin/python"
        self.port = free_port()
        self.address = f"ssh://{user.pw_name}@127.0.0.1:{self.port}"
        self._sshd: psutil.Process | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment by which this side finds its own ``ssh``, keys and connections."""
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(self.folder / "run")}

    @property
    def master(self) -> RuntimeFile:
        """The master that runs there."""
        runtime = read_runtime(self.home_there)
        assert runtime is not None
        return runtime

    def connection(self, home: Home | None = None) -> Connection:
        """Return the connection of a home of this side."""
        return Connection(parse_target(self.address), home or Home.default())

    def python_with(self, name: str, **variables: str) -> str:
        """Make an interpreter there with other environment variables; return the address that names it."""
        path = self.folder / "there" / name
        settings = "".join(f"export {variable}={value}\n" for variable, value in variables.items())
        path.write_text(f'#!/bin/sh\n{settings}exec {self.python} "$@"\n')
        path.chmod(0o755)
        return f"{self.address}?python={path}"

    def be_behind(self, port: int) -> None:
        """Let this machine be reached by another port of loopback, which leads to its own."""
        known = self.folder / "known_hosts"
        known.write_text(known.read_text() + known.read_text().replace(f":{self.port} ", f":{port} ", 1))
        self.address = f"ssh://{self.user.pw_name}@127.0.0.1:{port}"

    def start_sshd(self) -> None:
        """Start the server."""
        program = _sshd_program()
        assert program is not None
        self._configure("")
        known = self._times_listening()
        command = [program, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.folder / "sshd.log")]
        started = subprocess.run([*_AS_AN_ORPHAN, *command], stdout=subprocess.PIPE, text=True, check=True)
        self._sshd = psutil.Process(int(started.stdout))
        self._wait_until_listening(known + 1)

    @contextmanager
    def configured(self, more: str = "", **variables: str) -> Iterator[None]:
        """Have another configuration of the server and another environment there for the block."""
        self._reconfigure(more, **variables)
        try:
            yield
        finally:
            self._reconfigure("")

    def _reconfigure(self, more: str, **variables: str) -> None:
        assert self._sshd is not None
        self._configure(more, **variables)
        known = self._times_listening()
        self._sshd.send_signal(signal.SIGHUP)
        self._wait_until_listening(known + 1)

    def _configure(self, more: str, **variables: str) -> None:
        environment = {
            "HOME": str(self.folder / "there"),
            "XDG_DATA_HOME": str(self.folder / "there" / ".local/share"),  # where sshd does not let HOME be set
            "DET_HOME": str(self.home_there.path),
            "DET_SLOTS": "cpu:2",
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
        } | variables
        text = _SSHD_CONFIG.format(
            port=self.port,
            folder=self.folder,
            variables=" ".join(f"{name}={value}" for name, value in environment.items()),
            more=more,
        )
        (self.folder / "sshd_config").write_text(text)

    def _times_listening(self) -> int:
        log = self.folder / "sshd.log"
        return log.read_text().count("Server listening on") if log.exists() else 0

    def _wait_until_listening(self, times: int) -> None:
        assert self._sshd is not None
        deadline = time.monotonic() + PATIENCE
        while self._times_listening() < times:
            assert self._sshd.is_running(), (self.folder / "sshd.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop_sshd(self) -> None:
        """End the server and cut all its connections, as a machine does that loses its network."""
        if self._sshd is not None:
            self.cut()
            mark = start_mark(self._sshd.pid)
            self._sshd.terminate()
            self.cut()
            assert mark is None or wait_until_gone(self._sshd.pid, mark, PATIENCE)
            self._sshd = None

    def cut(self) -> int:
        """Kill what serves the connections that stand; return how many processes that were."""
        found = self.serving()
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(found, timeout=PATIENCE)
        return len(found)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let nothing answer at its port for the block, and cut the connections that stood."""
        port, self.port = self.port, free_port()
        try:
            with self.configured():
                self.cut()
                yield
                self.port = port
        finally:
            self.port = port

    def freeze(self, number: signal.Signals = signal.SIGSTOP) -> None:
        """Let the connections be silent (SIGSTOP), or speak again (SIGCONT)."""
        for process in self.serving():
            process.send_signal(number)

    def listen(self, number: signal.Signals) -> None:
        """Leave new connections without an answer (SIGSTOP), or give one again (SIGCONT)."""
        assert self._sshd is not None
        psutil.Process(self._sshd.pid).send_signal(number)

    def serving(self) -> list[psutil.Process]:
        """Return the processes that serve connections."""
        assert self._sshd is not None
        found = []
        if not self._sshd.is_running():
            return found
        for process in psutil.Process(self._sshd.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("sshd"):
                    found.append(process)
        return found

    def processes(self) -> list[psutil.Process]:
        """Return what runs there: the master, its standbys and workers, and what those started."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("TMPDIR") == str(
                    self.folder / "tmp"
                ):
                    found.append(process)
        return found

    def end_masters(self) -> None:
        """End the master there, and all that it has started."""
        while found := self.processes():  # one that was being started is found the next time
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            _, alive = psutil.wait_procs(found, timeout=PATIENCE)
            assert not alive

    @contextmanager
    def as_seen_here(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
        """Let this process reach it, and close the connection of the test's home afterwards."""
        for name, value in self.variables.items():
            monkeypatch.setenv(name, value)
        try:
            yield self
        finally:
            for noted in (Home.default().path / "remote").glob("*.json"):
                Connection(parse_target(Link.model_validate_json(noted.read_bytes()).name), Home.default()).close()


@contextmanager
def running_machine(*import_path: Path) -> Iterator[SshMachine]:
    """Run one for the block; the test is skipped where there is no sshd.

    Parameters
    ----------
    *import_path : Path
        Folders of packages that are copied there.
    """
    if _sshd_program() is None or shutil.which("ssh") is None:
        pytest.skip("no sshd here: tools/system_packages.sh installs openssh-server")
    folder = Path(tempfile.mkdtemp(prefix=_USER_PREFIX, dir="/tmp"))
    folder.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        created = stack.enter_context(_another_user(folder))
        user = created or pwd.getpwuid(os.getuid())
        machine = SshMachine(folder, user, other=created is not None)
        _furnish(machine, import_path)
        stack.callback(machine.end_masters)
        stack.callback(machine.stop_sshd)
        machine.start_sshd()
        yield machine


def _furnish(machine: SshMachine, import_path: tuple[Path, ...]) -> None:
    folder = machine.folder
    for name, mode in (("run", 0o700), ("bin", 0o755), ("packages", 0o755)):
        (folder / name).mkdir(mode=mode)
    for name in ("there", "tmp"):
        (folder / name).mkdir(exist_ok=True)
        os.chown(folder / name, machine.user.pw_uid, machine.user.pw_gid)
    for key in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{machine.port} {host_key}\n")
    (folder / "ssh_config").write_text(_SSH_CONFIG.format(port=machine.port, folder=folder))
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    for path in import_path:
        shutil.copytree(path, folder / "packages", dirs_exist_ok=True)
    python = _SYSTEM_PYTHON if machine.other_user else sys.executable
    environment = machine.python.parents[1]
    subprocess.run([python, "-m", "venv", "--without-pip", str(environment)], check=True)
    [packages] = environment.glob("lib/python3*/site-packages")
    places = [*_own_packages(), str(folder / "packages")]
    (packages / "all.pth").write_text("".join(f"import site; site.addsitedir({place!r})\n" for place in places))


def free_port() -> int:
    """Return a port on which nothing listens."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def _own_packages() -> list[str]:
    return [place for place in sys.path if place.endswith("site-packages")]


@contextmanager
def _another_user(folder: Path) -> Iterator[pwd.struct_passwd | None]:
    """Make a user for the block; None where that is not possible, or this environment is closed to others."""
    if os.getuid() != 0 or shutil.which("useradd") is None or not os.access(_SYSTEM_PYTHON, os.X_OK):
        yield None
        return
    name = f"{_USER_PREFIX}{os.getpid()}"
    _forget_left_users()
    home = folder / "there"
    made = subprocess.run(
        ["useradd", "-M", "-d", str(home), "-s", "/bin/sh", "-p", "*", name], capture_output=True, check=False
    )
    if made.returncode != 0:
        yield None
        return
    try:
        user = pwd.getpwnam(name)
        home.mkdir()
        yield user if _can_import(user) else None
    finally:
        subprocess.run(["userdel", "-f", name], capture_output=True, check=False)


def _forget_left_users() -> None:
    """Remove users of tests that were killed before they could."""
    for user in pwd.getpwall():
        number = user.pw_name.removeprefix(_USER_PREFIX)
        if number != user.pw_name and number.isdigit() and not psutil.pid_exists(int(number)):
            subprocess.run(["userdel", "-f", user.pw_name], capture_output=True, check=False)


def _can_import(user: pwd.struct_passwd) -> bool:
    """Return whether a user can use this environment's packages with the system's Python of the same version."""
    code = (
        f"import site, sys; [site.addsitedir(place) for place in {_own_packages()}]; "
        "import det_native, pydantic_core; print(sys.version_info[:2])"
    )
    done = subprocess.run(
        [_SYSTEM_PYTHON, "-c", code],
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() == str(sys.version_info[:2])


def _sshd_program() -> str | None:
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if program is not None and os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    return program
