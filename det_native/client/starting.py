"""Starting a master in the background: exactly one, however many ask, without waiting longer than it takes."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from det_native.errors import MasterStartError
from det_native.schema.home import REFUSED, Home, RuntimeFile, last_runtime, read_runtime
from det_native.schema.start_settings import PLAIN, SECRET

# Without any work of the process that starts; one that works is waited for longer: its machine is slow or very busy.
START_SECONDS = 60.0
LONGEST_START_SECONDS = 300.0
_LOOK_SECONDS = 1.0
_LOG_LINES = 20
_LOG_BYTES = 1 << 16
_LOCK_POLL_SECONDS = 0.02
_LEAST_ROOM = 1 << 20

# What belongs to the kernel, or to the SSH session, that happens to start the master, not to the master.
_DROPPED_PREFIXES = ("DET_", "SSH_", "JPY_", "JUPYTER", "IPY", "KERNEL_", "PYDEVD_")
_DROPPED = {"MPLBACKEND", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT"}


class _Detached(subprocess.Popen[bytes]):
    """A child that outlives us on purpose: no warning about it when the interpreter ends."""

    def __del__(self, *_: object) -> None:
        """Do nothing."""


# Kept to be reaped once they have ended, if this process is still there.
_started: list[_Detached] = []


@dataclass(frozen=True)
class Started:
    """A running master, and whether this call started it."""

    runtime: RuntimeFile
    fresh: bool


def ensure_master(home: Home, arguments: Sequence[str] = ()) -> Started:
    """Return the master of a home, started now if none runs; after one that was killed, as that was started.

    Parameters
    ----------
    arguments : sequence of str
        Further arguments of ``python -m det_native.master``; without effect if one runs.

    Raises
    ------
    MasterStartError
        If it does not start; the message has the end of its log.
    """
    running = read_runtime(home)
    if running is not None:
        return Started(running, fresh=False)
    try:
        home.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(home.start_lock, timeout=LONGEST_START_SECONDS, mode=0o600, poll_interval=_LOCK_POLL_SECONDS):
            running = read_runtime(home)  # another process may have been first
            if running is not None:
                return Started(running, fresh=False)
            return Started(_start(home, arguments), fresh=True)
    except Timeout as error:
        raise MasterStartError(
            f"Another process has been starting a master in {home.path} for {LONGEST_START_SECONDS:.0f} s. "
            f"Its log is {home.log}."
        ) from error
    except OSError as error:
        _refuse_if_full(home)
        raise MasterStartError(
            f"The master's home {home.path} cannot be used: {error.strerror}. Set DET_HOME to a folder of yours."
        ) from error


def _start(home: Home, arguments: Sequence[str]) -> RuntimeFile:
    _started[:] = [process for process in _started if process.poll() is None]
    killed = last_runtime(home)
    before, settings = (killed.options, killed.settings) if killed is not None else ([], {})
    log_size = home.log.stat().st_size if home.log.exists() else 0
    read_end, write_end = os.pipe()
    try:
        with open(os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            process = _Detached(
                [
                    *(sys.executable, "-P", "-m", "det_native.master"),
                    *("--home", str(home.path), "--ready-fd", str(write_end), *before, *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home.path,
                env={**settings, **_environment()},
                pass_fds=(write_end,),
                start_new_session=True,
            )
    finally:
        os.close(write_end)
    begun = time.monotonic()
    try:
        ready = _read_until_ready(read_end, process.pid)
    finally:
        os.close(read_end)
    runtime = read_runtime(home) if ready is True else None
    if runtime is None:
        process.kill()
        process.wait()
        other = _other(home)
        if other is not None:
            return other
        _refuse_if_full(home)
        if isinstance(ready, str):
            raise MasterStartError(f"The master did not start: {ready}")
        reason = "did not start" if ready is not None else f"was not ready after {time.monotonic() - begun:.0f} s"
        end = _end_of_log(home.log, log_size)
        raise MasterStartError(f"The master {reason}. The end of its log {home.log}:\n{end}")
    _started.append(process)
    return runtime


def _other(home: Home) -> RuntimeFile | None:
    """Return the master that was in the way of a start: whoever has begun that one has ended before it was ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = read_runtime(home)
        if running is not None:
            return running
        try:
            with FileLock(home.master_lock, timeout=0, mode=0o600):
                return None
        except Timeout:
            time.sleep(_LOCK_POLL_SECONDS)
    return None


def _refuse_if_full(home: Home) -> None:
    """Say that the disk is full, if that is why a master has not started."""
    try:
        free = shutil.disk_usage(home.path).free
    except OSError:
        return
    if free < _LEAST_ROOM:
        raise MasterStartError(
            f"The master did not start: the disk of its home {home.path} is full ({free / 1024:.0f} KiB are free). "
            "Make room there, or set DET_HOME to a folder on another disk."
        )


def _read_until_ready(descriptor: int, pid: int) -> bool | str | None:
    """Wait for the word of a starting master: True once it is ready, False if it ended, None if it takes too long.

    A sentence says why it does not start.
    """
    begun = worked = time.monotonic()
    used = 0.0
    text = b""
    while b"\n" not in text:
        readable, _, _ = select.select([descriptor], [], [], min(_LOOK_SECONDS, START_SECONDS))
        if readable:
            data = os.read(descriptor, 1024)
            if not data:
                return False
            text += data
            continue
        now = time.monotonic()
        if (seconds := _processor_seconds(pid)) > used:
            worked, used = now, seconds
        if now - worked >= START_SECONDS or now - begun >= LONGEST_START_SECONDS:
            return None
    if text.startswith(REFUSED):
        return text.removeprefix(REFUSED).decode(errors="replace").strip()
    return text == b"ready\n"


def _processor_seconds(pid: int) -> float:
    """Return how much processor time a child has used."""
    import psutil  # slow to load, and most masters are ready before

    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in PLAIN or name in SECRET or not (name.startswith(_DROPPED_PREFIXES) or name in _DROPPED)
    }


def _end_of_log(path: Path, since: int) -> str:
    with path.open("rb") as file:
        file.seek(max(since, path.stat().st_size - _LOG_BYTES))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:]) or "(it wrote nothing)"
