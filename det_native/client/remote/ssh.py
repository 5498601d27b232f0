"""One connection of the system's ``ssh`` to a machine, which goes on in the background and is shared by processes.

``ssh`` itself does the sharing (its control socket): commands and forwarded sockets go over the connection that stands.
The user's keys, agent, jump hosts and ``~/.ssh/config`` are used; nothing is asked.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from det_native.client.remote.problems import problem_of
from det_native.client.remote.target import Target
from det_native.errors import MasterUnreachableError, MissingDependencyError, UnsupportedFeatureError
from det_native.schema.sockets import dial, short_path

# Seconds without any open request after which the connection ends by itself; the next request makes it anew.
IDLE_SECONDS = 600
# A line that is silent counts as cut after three times as many seconds.
_ALIVE_SECONDS = 5
_CONNECT_SECONDS = 10
_OPEN_SECONDS = 60.0
_CONTROL_SECONDS = 10.0
_SSH_FAILED = 255
# By so many letters ssh makes the name of a socket longer while it makes one.
_ADDED_LETTERS = 17
_PORT_TRIES = 3
_PROCESS = re.compile(r"pid=(\d+)")


class Done(NamedTuple):
    """How a script has ended there, and what it has printed."""

    code: int
    printed: str
    complained: str


class Line:
    """The shared connection to one machine.

    Whoever opens or closes it holds a lock.

    Parameters
    ----------
    key : str
        Tells it from other connections of this user.
    log : Path
        Where ``ssh`` writes what is wrong.
    """

    def __init__(self, target: Target, key: str, log: Path) -> None:
        self.target = target
        self._log = log
        try:
            self._socket = short_path(key, (os.environ.get("XDG_RUNTIME_DIR"),), room=_ADDED_LETTERS)
        except OSError as error:
            raise UnsupportedFeatureError(f"ssh cannot share a connection here: {error}.") from error

    def open(self) -> int:
        """Connect; returns the process that holds the connection.

        Raises
        ------
        MasterUnreachableError, AuthenticationError
            If that fails, with the reason.
        """
        self.close()
        self._log.unlink(missing_ok=True)
        options = (
            *("BatchMode=yes", f"ConnectTimeout={_CONNECT_SECONDS}", "LogLevel=INFO"),
            *(f"ControlPersist={IDLE_SECONDS}", f"ServerAliveInterval={_ALIVE_SECONDS}", "ServerAliveCountMax=3"),
            # Of what the user has configured for work in a terminal there.
            *("ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "RequestTTY=no", "RemoteCommand=none"),
            *("PermitLocalCommand=no", "Tunnel=no"),
        )
        command = [
            *(_program(), "-M", "-N", "-f", "-S", str(self._socket), "-E", str(self._log)),
            *(text for option in options for text in ("-o", option)),
            *self.target.arguments,
        ]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_OPEN_SECONDS,
                start_new_session=True,  # Ctrl-C here ends what is done here, not the connection of others
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise problem_of(f"{self.said()}\nnot connected after {_OPEN_SECONDS:.0f} s", self.target) from error
        process = self.process() if done.returncode == 0 else None
        if process is None:
            raise problem_of(self.said(), self.target)
        return process

    def said(self) -> str:
        """Return what ``ssh`` has written about this connection."""
        try:
            return self._log.read_text(errors="replace")
        except OSError:
            return ""

    def process(self) -> int | None:
        """Return the process that holds the connection, None if there is none."""
        match = _PROCESS.search(self._control("check"))
        return int(match[1]) if match else None

    def run(self, script: str, *, seconds: float) -> Done:
        """Run a script of the Bourne shell there.

        Raises
        ------
        MasterUnreachableError
            If the connection is lost meanwhile.
        """
        return self.run_command("sh -s", script.encode(), seconds=seconds)

    def run_command(self, command: str, body: bytes | Path, *, seconds: float) -> Done:
        """Run a command there, which reads `body`, or a file; raises as :meth:`run` does."""
        try:
            with contextlib.ExitStack() as opened:
                given: dict[str, Any] = (
                    {"stdin": opened.enter_context(body.open("rb"))} if isinstance(body, Path) else {"input": body}
                )
                done = subprocess.run(
                    [*self._shared(), "-T", *self.target.arguments, command],
                    **given,
                    capture_output=True,
                    timeout=seconds,
                    start_new_session=True,
                    check=False,
                )
        except subprocess.TimeoutExpired as error:
            raise MasterUnreachableError(
                f"{self.target.machine} has not answered after {seconds:.0f} s; `{self.target.typed}` in a terminal "
                "shows what is the matter there."
            ) from error
        if done.returncode == _SSH_FAILED:
            text = f"{self.said()}\n{done.stderr.decode(errors='replace')}".strip()
            raise problem_of(text or "the connection broke off", self.target)
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    @property
    def forwarded(self) -> Path:
        """The socket of this machine at which the master there is reached."""
        return self._socket.with_name(f"{self._socket.name}.m")

    def forward(self, there: Path) -> Path:
        """Forward a socket of this machine, which only this user can open, to one there; returns it.

        Raises
        ------
        MasterUnreachableError
            If that is not possible.
        """
        here = self.forwarded
        here.unlink(missing_ok=True)
        said = self._control("forward", "-L", f"{here}:{there}")
        if not answers(here):
            raise MasterUnreachableError(
                f"No socket could be forwarded to {self.target.machine} ({said.strip() or 'ssh does not say why'})."
            )
        return here

    def forget(self, there: Path) -> None:
        """Forward it no more; what goes over it now goes on."""
        self._control("cancel", "-L", f"{self.forwarded}:{there}")

    def forward_port(self, there: Path, before: int = 0) -> int:
        """Forward a free port of this machine's loopback to a socket there, the one of `before` if it is; return it.

        Who else has an account here can reach it, too: what listens there has to know its own.

        Raises
        ------
        MasterUnreachableError
            If that is not possible.
        """
        said = ""
        for number in range(_PORT_TRIES):
            port = before if before and not number else _free_port()  # which somebody may take before ssh does
            done, said = self._told("forward", "-L", f"127.0.0.1:{port}:{there}")
            if done:
                return port
        raise MasterUnreachableError(
            f"No port could be forwarded to {self.target.machine} ({said.strip() or 'ssh does not say why'})."
        )

    def forget_port(self, port: int, there: Path) -> None:
        """Forward a port no more."""
        self._control("cancel", "-L", f"127.0.0.1:{port}:{there}")

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._socket.exists():
            self._control("exit")
            self._socket.unlink(missing_ok=True)
        self.forwarded.unlink(missing_ok=True)

    def _control(self, verb: str, *options: str) -> str:
        """Tell the process that holds the connection something; returns what is said about it."""
        return self._told(verb, *options)[1]

    def _told(self, verb: str, *options: str) -> tuple[bool, str]:
        """Tell it something; returns whether that was done, and what is said about it."""
        if not self._socket.exists():
            return False, ""
        try:
            done = subprocess.run(
                [*self._shared(), "-O", verb, *options, *self.target.arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_CONTROL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, "ssh does not answer"
        return done.returncode == 0, done.stderr

    def _shared(self) -> list[str]:
        """Return the beginning of a command that uses this connection and never makes one of its own."""
        return [_program(), "-F", "none", "-S", str(self._socket), "-o", "ControlMaster=no", "-o", "ProxyCommand=false"]


def answers(place: Path) -> bool:
    """Return whether a process of this user's listens at a socket of this machine."""
    try:
        dial(place, 1.0).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _program() -> str:
    if sys.platform == "win32":
        raise UnsupportedFeatureError(
            "Windows' own ssh cannot share a connection: work in WSL, or start the master there by `det up --port "
            "8080`, forward that port by `ssh -L 8080:127.0.0.1:8080`, and set DET_MASTER=http://127.0.0.1:8080 and "
            "DET_TOKEN."
        )
    found = shutil.which("ssh")
    if found is None:
        raise MissingDependencyError("There is no `ssh` on this machine: install OpenSSH's client (openssh-client).")
    return found
