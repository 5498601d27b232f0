"""Whether the system has killed processes for want of memory, among those that share a worker's memory limit.

The kernel counts such kills for each control group, and for the whole machine. The machine's count alone proves nothing
about one worker: another container's process may have been the one that was killed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


class MemoryKills:
    """The count of kills in a process's control group, from now on; the machine's where the group has none.

    Parameters
    ----------
    pid : int
        A running process. Where it is moved to another group later, that one's count is not seen.
    """

    def __init__(self, pid: int) -> None:
        self._counter = _group_counter(pid) or Path("/proc/vmstat")
        self._before = _count(self._counter) or 0

    def any(self) -> bool:
        """Whether there was one since."""
        return (_count(self._counter) or 0) > self._before


def _group_counter(pid: int) -> Path | None:
    """Return the file with the count of a process's group; None where the system has none, or does not show it."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    candidates = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):  # version 1 of control groups
            # In a container without a name space of its own, the path is the host's, which is not visible.
            candidates += [_GROUPS / "memory" / group[1:] / "memory.oom_control", _GROUPS / "memory/memory.oom_control"]
        elif not controllers:
            for root in (_GROUPS / group[1:], _GROUPS):
                candidates += [root / "memory.events.local", root / "memory.events"]
    return next((path for path in candidates if _count(path) is not None), None)


def _count(path: Path) -> int | None:
    """Return the count that a file shows, None if it shows none."""
    with suppress(OSError):
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None
