"""Readings of a process tree, and the metrics that follow from two of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Over a shorter time a rate says nothing: processor time is counted in hundredths of a second.
_LEAST_SECONDS = 0.1

CPU_SECONDS = "cpu_seconds"
CPU = "cpu_percent"
_PER_SECOND = "_per_second"


@dataclass(frozen=True)
class Reading:
    """What is known at one moment. What could not be read is in neither of the dictionaries.

    Attributes
    ----------
    moment : float
        Seconds of the monotonic clock.
    amounts : dict of str to float
        What is used now, such as ``memory_bytes``.
    totals : dict of str to float
        What has been used so far, such as ``disk_read_bytes``; it only grows.
    """

    moment: float
    amounts: Mapping[str, float] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)


def metrics_between(before: Reading, now: Reading) -> dict[str, float]:
    """Return the metrics of the time between two readings: the amounts of the second, and what grew, per second.

    A total that is smaller than it was (a process has left the tree) says nothing, and is left out.
    """
    metrics = dict(now.amounts)
    seconds = now.moment - before.moment
    if seconds < _LEAST_SECONDS:
        return metrics
    for name, total in now.totals.items():
        grown = total - before.totals.get(name, float("inf"))
        if grown < 0:
            continue
        if name == CPU_SECONDS:
            metrics[CPU] = 100.0 * grown / seconds
        else:
            metrics[name + _PER_SECOND] = grown / seconds
    return metrics
