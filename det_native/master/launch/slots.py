"""The slots of this machine: its GPUs, or shares of its CPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from det_native.errors import ArgumentError
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


_QUERY_SECONDS = 20.0
_GPU_LINE = re.compile(r"GPU (\d+): ")
_MIG_LINE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` would name them."""
    restricted = environment.get("CUDA_VISIBLE_DEVICES")
    if restricted is not None:
        named = [item.strip() for item in restricted.split(",")]
        # CUDA itself stops at the first entry that names no device.
        cut = next((index for index, item in enumerate(named) if item in ("", "-1")), len(named))
        if cut == 0:
            return []
        return named[:cut] if _all_gpus(environment) else []
    return _all_gpus(environment)


def _all_gpus(environment: Mapping[str, str]) -> list[str]:
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return []
    try:
        answer = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=_QUERY_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_gpus(answer.stdout) if answer.returncode == 0 else []


def parse_gpus(listing: str) -> list[str]:
    """Read the output of ``nvidia-smi -L``; a GPU that is divided counts as its parts."""
    found: list[str] = []
    whole: str | None = None
    for line in listing.splitlines():
        if gpu := _GPU_LINE.match(line):
            if whole is not None:
                found.append(whole)
            whole = gpu[1]
        elif part := _MIG_LINE.match(line):
            whole = None
            found.append(part[1])
    return found if whole is None else [*found, whole]
