"""Free GPUs that other processes fill: a trial there would meet the end of the memory."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from det_native.master.launch.slots import device_of
from det_native.schema.nvml import Gpu, read_gpus
from det_native.schema.rest import SlotInfo

# What less of a GPU's memory is taken by the driver, or disturbs nobody.
_SHARE = 0.1
_MOST_NAMED = 3


def notices(slots: Iterable[SlotInfo]) -> list[str]:
    """Return a sentence for each slot that no trial holds and other processes fill."""
    free = {device: slot for slot in slots if slot.trial_id is None and (device := device_of(slot.id)) is not None}
    if not free:
        return []
    found = read_gpus(free)
    return [_sentence(free[device], gpu) for device, gpu in found.items() if gpu.used > _SHARE * gpu.memory]


def _sentence(slot: SlotInfo, gpu: Gpu) -> str:
    users = ", ".join(_process(pid) for pid in sorted(gpu.processes, key=lambda pid: -gpu.processes[pid])[:_MOST_NAMED])
    who = f" ({users})" if users else ""
    return (
        f"Of {slot.id}, {gpu.name}, which no trial holds, other processes{who} use {gpu.used / 1e9:.1f} of "
        f"{gpu.memory / 1e9:.1f} GB: a trial there may find no memory."
    )


def _process(pid: int) -> str:
    try:
        return f"{pid} {psutil.Process(pid).name()}"
    except psutil.Error:
        return str(pid)
