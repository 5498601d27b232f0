"""A process beside an agent that kills the agent's workers once the agent is gone: nobody would hear of what they do.

It is run by its path, with the standard library only, and takes one argument: a setting, ``NAME=value``, that is in the
environment of every worker. It waits for the end of its standard input; if that comes after the word ``done``, it ends
and kills nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress

_ROUNDS = 50
_TEMPORARY = b"TMPDIR="
_PREFIX = "det-"


def main() -> None:
    """Wait for the agent's end, and kill what it leaves."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    said = b""
    while chunk := os.read(0, 64):
        said += chunk
    if not said.endswith(b"done"):
        kill_marked(sys.argv[1].encode())


def kill_marked(mark: bytes) -> None:
    """SIGKILL all processes with this setting in their environment and what they have started, until none is left."""
    folders: set[str] = set()
    for _ in range(_ROUNDS):  # one that is being forked is not seen by the first
        members = _members(mark, folders)
        if not members:
            break
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _members(mark: bytes, folders: set[str]) -> set[int]:
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    marked: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if not fields or fields[0] in (b"Z", b"X"):
            continue
        parents[pid], sessions[pid] = int(fields[1]), int(fields[3])
        settings = _read(f"/proc/{name}/environ").split(b"\0")
        if mark in settings:
            marked.add(pid)
            values = [os.fsdecode(each[len(_TEMPORARY) :]) for each in settings if each.startswith(_TEMPORARY)]
            folders |= {value for value in values if os.path.basename(value).startswith(_PREFIX)}
    doomed = marked | {pid for pid, session in sessions.items() if session in marked}
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in doomed} - doomed
        doomed |= children
        grown = bool(children)
    return doomed - {os.getpid()}


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the process has ended, or is another user's
        return b""


if __name__ == "__main__":
    main()
