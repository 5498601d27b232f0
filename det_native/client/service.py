"""A unit of the user's systemd that starts the master of this machine after a reboot, too."""

from __future__ import annotations

import getpass
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from det_native.client.starting import START_SECONDS, ensure_master
from det_native.client.stopping import stop_master
from det_native.errors import MasterStartError
from det_native.schema.home import Home, read_runtime
from det_native.schema.start_settings import PLAIN, SECRET

# What a master needs of its environment besides its own settings: to find programs, libraries and GPUs.
_OF_THE_MACHINE = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LANG", "XDG_DATA_HOME")
# How a Ray cluster is opened; its token itself stays out of the unit.
_OF_RAY = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")
_COMMAND_SECONDS = 60.0
_POLL_SECONDS = 0.1

_UNIT = """\
# Written by `det up --service`, and replaced by it.
[Unit]
Description=det_native master of {home}

[Service]
Type=exec
ExecStart={command}
WorkingDirectory={home}
StandardOutput=append:{log}
StandardError=append:{log}
# Running trials go on when the master stops, and the next one takes them over.
KillMode=process
# `det down` ends it for good, until the next boot.
Restart=on-failure
RestartSec=10
# Another master has the home, or the arguments are wrong.
RestartPreventExitStatus=2 4
{environment}
[Install]
WantedBy=default.target
"""


@dataclass(frozen=True)
class Service:
    """The unit of a home.

    Attributes
    ----------
    path : Path
        Its file.
    commands : tuple of tuple of str
        What is run once it is written, in this order.
    cron : str
        The line of a crontab that starts the same master, with the same variables.
    """

    path: Path
    text: str
    commands: tuple[tuple[str, ...], ...]
    cron: str

    @property
    def name(self) -> str:
        """The name of the unit."""
        return self.path.name


def plan_service(
    home: Home, arguments: Sequence[str] = (), environment: Mapping[str, str] = os.environ, *, running: bool = False
) -> Service:
    """Return the unit of a home; nothing is written.

    Parameters
    ----------
    arguments : sequence of str
        Further arguments of ``python -m det_native.master``.
    environment : mapping
        What the master is to find of it is written into the unit; no secrets.
    running : bool
        Whether a master runs already: then the unit starts the next one.
    """
    command = [sys.executable, "-P", "-m", "det_native.master", "--home", str(home.path), *arguments]
    kept = {name: environment[name] for name in (*_OF_THE_MACHINE, *_OF_RAY, *sorted(PLAIN)) if environment.get(name)}
    text = _UNIT.format(
        home=_plain(str(home.path)),
        log=_plain(str(home.log)),
        command=" ".join(_quoted(word, of_command=True) for word in command),
        environment="".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in kept.items()),
    )
    folder = Path(environment.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd" / "user"
    path = folder / f"det-native{_suffix(home, environment)}.service"
    enable = ("systemctl", "--user", "enable", *(() if running else ("--now",)), path.name)
    # Without it, what a user has started begins with the first login and ends with the last session.
    commands = (("systemctl", "--user", "daemon-reload"), enable, ("loginctl", "enable-linger"))
    return Service(path, text, commands, _cron_line(home, command, kept))


def require_systemd(service: Service) -> None:
    """See that there is a systemd for this user, before anything is shown or written.

    Raises
    ------
    MasterStartError
        If there is none; it has the line for cron.
    """
    if shutil.which("systemctl") is None:
        raise _no_systemd("there is no `systemctl`", service)
    question = ("systemctl", "--user", "show-environment")
    wrong = _run(question)
    if wrong is not None:
        raise _no_systemd(f"`{shlex.join(question)}` says: {wrong}", service)


def install(service: Service, home: Home, arguments: Sequence[str] = (), *, running: bool) -> list[str]:
    """Write the unit and start it; return sentences on what it cannot do.

    The unit has no passwords. Where there are some in the environment, a master that is started with the arguments, and
    ended at once, has the home keep them.

    Raises
    ------
    MasterStartError
        If there is no systemd for this user, or it does not start the master.
    """
    require_systemd(service)
    if not running and any(os.environ.get(name) for name in SECRET):
        stop_master(ensure_master(home, arguments).runtime, home, kill=False)
    home.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    service.path.parent.mkdir(parents=True, exist_ok=True)
    temporary = service.path.with_name(f".{service.name}.{os.getpid()}")
    temporary.write_text(service.text, "utf-8")
    temporary.chmod(0o600)
    temporary.replace(service.path)
    *starting, lingering = service.commands
    for command in starting:
        wrong = _run(command)
        if wrong is not None:
            service.path.unlink(missing_ok=True)
            raise _no_systemd(f"`{shlex.join(command)}` says: {wrong}", service)
    if not running:
        _wait_until_it_runs(service, home)
    wrong = _run(lingering)
    if wrong is None:
        return []
    return [
        f"It starts when you log in, and ends with your last session: `{shlex.join(lingering)}` says: {wrong}. "
        f"`sudo loginctl enable-linger {getpass.getuser()}` has it start with the machine."
    ]


def removal(service: Service) -> str:
    """Return the command that undoes it."""
    return f"systemctl --user disable {service.name} && rm {shlex.quote(str(service.path))}"


def _wait_until_it_runs(service: Service, home: Home) -> None:
    deadline = time.monotonic() + START_SECONDS
    while read_runtime(home) is None:
        if time.monotonic() > deadline:
            raise MasterStartError(
                f"The unit is written, and no master runs after {START_SECONDS:.0f} s: `systemctl --user status "
                f"{service.name}`, and the log {home.log}, say why."
            )
        time.sleep(_POLL_SECONDS)


def _no_systemd(why: str, service: Service) -> MasterStartError:
    return MasterStartError(
        f"systemd starts nothing for this user: {why}. Where there is cron, this line in `crontab -e` does it: "
        f"{service.cron}"
    )


def _cron_line(home: Home, command: Sequence[str], variables: Mapping[str, str]) -> str:
    place = shlex.quote(str(home.path))
    words = [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)]
    line = f"mkdir -p -m 700 {place} && cd {place} && {' '.join(words)} >> {shlex.quote(str(home.log))} 2>&1"
    return "@reboot " + line.replace("%", "\\%")  # which would end the command


def _run(command: Sequence[str]) -> str | None:
    """Run a command; return what it says where it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
            env=_with_bus(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]


def _with_bus() -> dict[str, str]:
    """Return the environment in which the user's systemd is found, where a session of SSH has not set it."""
    place = Path(f"/run/user/{os.getuid()}")
    return {**({"XDG_RUNTIME_DIR": str(place)} if place.is_dir() else {}), **os.environ}


def _suffix(home: Home, environment: Mapping[str, str]) -> str:
    """Return what tells the unit of another home from that of the default one."""
    usual = Path(environment.get("XDG_DATA_HOME") or "~/.local/share").expanduser().absolute() / "det_native"
    return "" if home.path == usual else f"-{hashlib.sha256(str(home.path).encode()).hexdigest()[:8]}"


def _plain(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(text: str, *, of_command: bool = False) -> str:
    """Return a word as systemd reads it."""
    escaped = _plain(text).replace("\\", "\\\\").replace('"', '\\"')
    if of_command:
        escaped = escaped.replace("$", "$$")
    return f'"{escaped}"'
