"""How a worker process ended, and in which words that is told."""

from __future__ import annotations

import signal
from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a process ended. `code` and `peak` (bytes of memory) are None for a process that was not our child."""

    code: int | None
    peak: int | None
    out_of_memory: bool


def describe(ended: Ended, *, asked_to_end: bool) -> str:
    """Say how a process ended."""
    peak = f"peak memory {ended.peak // _MIB} MiB" if ended.peak is not None else ""
    if ended.code is None:
        return "the worker is gone; it was started by an earlier master, so its exit code is not known"
    if ended.code >= 0:
        return f"exit code {ended.code}" + (f" ({peak})" if peak else "")
    name = signal.Signals(-ended.code).name
    if asked_to_end:
        return f"ended on request ({name})"
    text = "; ".join(part for part in (f"killed by signal {-ended.code} ({name})", peak) if part)
    if ended.out_of_memory:
        return f"{text}; the system had run out of memory"
    if ended.code == -signal.SIGKILL:
        return f"{text}; if nobody killed it, the system may have run out of memory"
    return text
