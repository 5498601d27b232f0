"""Reads what this process and all that it has started use, by the operating system and NVIDIA's driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from det_harness.system.usage import CPU_SECONDS, Reading
from det_native.schema.nvml import read_gpus

if TYPE_CHECKING:
    import psutil

Counts = tuple[float, float]
Answer = TypeVar("Answer")


class Meter:
    """Reads the use of the calling process's tree.

    Parameters
    ----------
    devices : sequence of str
        Its GPUs, as ``CUDA_VISIBLE_DEVICES`` names them; they are numbered as the process sees them.
    network : bool
        Whether to read the network too. It can be told of the whole machine only: one process of a trial on each is
        enough.
    """

    def __init__(self, devices: Sequence[str], *, network: bool = True) -> None:
        import psutil

        self._psutil = psutil
        self._own = psutil.Process()
        self._devices = list(devices)
        self._network = network
        # A process that has ended, but is not waited for yet, may not say this any more.
        self._disk: dict[int, Counts] = {}

    def read(self) -> Reading:
        """Read all that can be read now."""
        processes = self._tree()
        amounts: dict[str, float] = {}
        totals: dict[str, float] = {}
        memory = self._of_each(processes, lambda one: float(one.memory_info().rss))
        if memory:
            amounts["memory_bytes"] = sum(memory.values())
        seconds = self._of_each(processes, lambda one: float(sum(one.cpu_times()[:4])))
        if seconds:
            totals[CPU_SECONDS] = sum(seconds.values())
        disk = self._read_disk(processes)
        if disk is not None:
            totals["disk_read_bytes"], totals["disk_write_bytes"] = disk
        if self._network:
            received, sent = self._read_network()
            totals["network_received_bytes"], totals["network_sent_bytes"] = received, sent
        self._read_gpus(amounts)
        return Reading(time.monotonic(), amounts, totals)

    def _tree(self) -> list[psutil.Process]:
        try:
            return [self._own, *self._own.children(recursive=True)]
        except self._psutil.Error:
            return [self._own]

    def _of_each(
        self, processes: Sequence[psutil.Process], ask: Callable[[psutil.Process], Answer]
    ) -> dict[int, Answer]:
        """Return what processes say of themselves, by number; those are left out that are gone or may not be asked."""
        answers: dict[int, Answer] = {}
        for one in processes:
            with suppress(self._psutil.Error, OSError, AttributeError):
                answers[one.pid] = ask(one)
        return answers

    def _read_disk(self, processes: Sequence[psutil.Process]) -> Counts | None:
        """Return the bytes read and written so far; None where the system does not tell it of this process."""
        counts = self._of_each(processes, _disk_counts)
        if self._own.pid not in counts:
            return None
        pids = {one.pid for one in processes}
        self._disk = {pid: count for pid, count in self._disk.items() if pid in pids} | counts
        read, written = zip(*self._disk.values(), strict=True)
        return sum(read), sum(written)

    def _read_network(self) -> Counts:
        interfaces = self._psutil.net_if_stats()
        counters = self._psutil.net_io_counters(pernic=True)
        outside = [
            counted
            for name, counted in counters.items()
            if "loopback" not in getattr(interfaces.get(name), "flags", "").split(",")
        ]
        return float(sum(one.bytes_recv for one in outside)), float(sum(one.bytes_sent for one in outside))

    def _read_gpus(self, amounts: dict[str, float]) -> None:
        found = read_gpus(self._devices) if self._devices else {}
        for number, device in enumerate(self._devices):
            if device in found:
                amounts[f"gpu{number}_memory_bytes"] = float(found[device].used)
                busy = found[device].busy
                if busy is not None:
                    amounts[f"gpu{number}_percent"] = busy


def _disk_counts(process: psutil.Process) -> Counts:
    found = process.io_counters()  # not on every system
    return float(found.read_bytes), float(found.write_bytes)
