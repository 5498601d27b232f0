"""The slots of this machine: its GPUs, or shares of its CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping

from det_native.errors import ArgumentError
from det_native.schema.gpus import visible_gpus
from det_native.schema.nvml import read_gpus
from det_native.schema.resources import SLOTS_SETTING
from det_native.schema.rest import SlotInfo


def discover_slots(setting: str | None = None, environment: Mapping[str, str] = os.environ) -> list[SlotInfo]:
    """Return the slots, without importing a framework.

    Parameters
    ----------
    setting : str, optional
        ``"4"`` (4 GPUs where there are any, else 4 CPU slots), ``"cpu:4"`` or ``"cuda:4"``; all GPUs, else one CPU slot
        a core, by default. ``DET_SLOTS`` and ``det up --slots`` say it.
    environment : mapping
        Where ``CUDA_VISIBLE_DEVICES`` is looked up.

    Raises
    ------
    ArgumentError
        If the setting is malformed, or asks for more GPUs than there are.
    """
    if not setting:
        gpus = visible_gpus(environment)
        return _cuda(gpus) if gpus else _cpu(len(os.sched_getaffinity(0)))
    match = SLOTS_SETTING.fullmatch(setting.strip().lower())
    if match is None or int(match[2]) == 0:
        raise ArgumentError(f'slots: {setting!r} is no number of slots; write "4", "cpu:4" or "cuda:4"')
    device, count = match[1], int(match[2])
    gpus = [] if device == "cpu" else visible_gpus(environment)
    if device == "cpu" or (device is None and not gpus):
        return _cpu(count)
    if count > len(gpus):
        raise ArgumentError(
            f'slots: {setting!r} asks for {count} GPUs, this machine shows {len(gpus)}; "cpu:{count}" works'
        )
    return _cuda(gpus[:count])


def device_of(slot_id: str) -> str | None:
    """Return the value of ``CUDA_VISIBLE_DEVICES`` for a slot, or None for a CPU slot."""
    device, _, value = slot_id.partition(":")
    return value if device == "cuda" else None


def _cpu(count: int) -> list[SlotInfo]:
    return [SlotInfo(id=f"cpu:{index}", device="cpu") for index in range(count)]


def _cuda(names: list[str]) -> list[SlotInfo]:
    known = read_gpus(names)
    return [
        SlotInfo(id=f"cuda:{name}", device="cuda", name=known[name].name, memory=known[name].memory)
        if name in known
        else SlotInfo(id=f"cuda:{name}", device="cuda")
        for name in names
    ]
