"""The processes that belong to a worker: its descendants, its session, and what left both but kept its mark."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

from det_native.schema.processes import MARKER_VARIABLE

_MAXIMUM_ROUNDS = 10


@dataclass(frozen=True)
class _Entry:
    pid: int
    parent: int
    session: int
    zombie: bool


def members(root: int | None, marker: str) -> set[int]:
    """Return all live processes of the worker `root`, itself included while it lives.

    Without `root`, whose number may be another process's by now, only the marker counts. A child that made a session of
    its own and whose parent has ended is found by the marker in its environment, which is what it was started with and
    cannot be changed by it afterwards.
    """
    entries = _entries()
    children: dict[int, list[int]] = {}
    for entry in entries.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found: set[int] = set()
    waiting = [
        pid for pid, entry in entries.items() if root in (pid, entry.session) or environment_marker(pid) == marker
    ]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    found.discard(os.getpid())
    return {pid for pid in found if not entries[pid].zombie}


def send(root: int | None, marker: str, number: signal.Signals) -> None:
    """Send a signal to every process of the worker."""
    for pid in members(root, marker):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_all(root: int | None, marker: str) -> None:
    """SIGKILL every process of the worker, until none is left that could start another."""
    for _ in range(_MAXIMUM_ROUNDS):
        remaining = members(root, marker)
        if not remaining:
            return
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def ended_strays() -> set[int]:
    """Return the children of this process that have ended in a session that is not this one's."""
    me, session = os.getpid(), os.getsid(0)
    return {
        pid for pid, entry in _entries().items() if entry.zombie and entry.parent == me and entry.session != session
    }


def environment_marker(pid: int) -> str:
    """Return the marker that a process was started with, empty if it has none or is gone."""
    prefix = f"{MARKER_VARIABLE}=".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # gone, or of another user: not ours in either case
        return ""
    return next((item[len(prefix) :].decode() for item in variables if item.startswith(prefix)), "")


def _entries() -> dict[int, _Entry]:
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it ended while we looked
            continue
        pid = int(name)
        found[pid] = _Entry(pid, int(fields[1]), int(fields[3]), fields[0] in (b"Z", b"X"))
    return found
