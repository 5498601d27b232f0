"""How much memory is left, for this machine and for the control group that the master runs in."""

from __future__ import annotations

from pathlib import Path

import psutil

# Limit, usage, statistics, and the line of the statistics with cached files, which give way: versions 2 and 1.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


def available_share(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the available share of the memory, 0 to 1: the machine's, or the control group's if that is less."""
    machine = psutil.virtual_memory()
    share = float(machine.available / machine.total)
    for limit_name, usage_name, statistics_name, cached_name in _GROUPS:
        try:
            limit, usage = (int((groups / name).read_text()) for name in (limit_name, usage_name))
            cached = _value((groups / statistics_name).read_text(), cached_name)
        except (OSError, ValueError):  # not this version of control groups, or "max": no limit
            continue
        if 0 < limit < machine.total:
            share = min(share, max(0.0, 1 - (usage - cached) / limit))
    return share


def _value(statistics: str, name: str) -> int:
    return next((int(line.split()[1]) for line in statistics.splitlines() if line.split()[0] == name), 0)
