"""Identity of a process: its number alone is not enough, since numbers are used again."""

from __future__ import annotations

import os
import select
import sys
import time
from functools import cache
from pathlib import Path

# In the environment of a worker and of all that it starts: random text, by which they are found.
MARKER_VARIABLE = "DET_WORKER"

_GONE_STATES = "ZX"
_POLL_SECONDS = 0.05


@cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_mark(pid: int) -> str | None:
    """Return what tells this process from a later one with the same number, or None if it is gone.

    The mark is the boot's id and the start in clock ticks since boot, so it does not move with the wall clock. A zombie
    counts as gone. Where there is no ``/proc`` the mark is empty for a process that exists.
    """
    if sys.platform == "linux":
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The name, in parentheses, may itself hold spaces and parentheses.
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in _GONE_STATES else f"{_boot_id()}:{fields[19]}"
    if sys.platform == "win32":
        return None  # no master runs there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""


def pid_namespace() -> str:
    """Return where numbers of processes count, as seen from here: another container has numbers of its own."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def is_near(start: str, namespace: str) -> bool:
    """Whether a process, by its mark and namespace, is one of this machine, or would be if it still lived."""
    boot = start.rpartition(":")[0]
    return namespace == pid_namespace() and (not boot or boot == _boot_id())


def is_alive(pid: int, mark: str) -> bool:
    """Return whether the process that `mark` was taken of still runs."""
    return start_mark(pid) == mark


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process (SIGSTOP); False where that cannot be told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] == "T"


def wait_until_gone(pid: int, mark: str, timeout: float) -> bool:
    """Wait until a process, not necessarily a child, has ended.

    Parameters
    ----------
    pid, mark
        The process, see :func:`start_mark`.
    timeout : float
        Seconds to wait at most.

    Returns
    -------
    bool
        False if it still runs after `timeout`.
    """
    deadline = time.monotonic() + timeout
    if sys.platform == "linux":
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # gone already, or a kernel without pidfd: the loop below tells
            descriptor = None
        if descriptor is not None:
            try:
                if is_alive(pid, mark):
                    select.select([descriptor], [], [], timeout)
            finally:
                os.close(descriptor)
    while is_alive(pid, mark):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
