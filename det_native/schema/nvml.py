"""What NVIDIA's driver tells of GPUs by its own library (NVML): model, memory, and who uses it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LIBRARY = "libnvidia-ml.so.1"
_NAME_BYTES = 96
_MOST_PROCESSES = 128
# NVML is told by each caller when it begins and ends; that is not safe for several threads of ours at once.
_lock = threading.Lock()


@dataclass(frozen=True)
class Gpu:
    """A GPU as it is now.

    Attributes
    ----------
    name : str
        Its model.
    memory, used : int
        Bytes.
    processes : dict of int to int
        Bytes by the number of the process; 0 where the driver does not tell.
    """

    name: str
    memory: int
    used: int
    processes: dict[int, int]


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def read_gpus(devices: Iterable[str]) -> dict[str, Gpu]:
    """Return what is known of GPUs, named as in ``CUDA_VISIBLE_DEVICES``; those of which nothing is known are left out.

    Without the driver's library it is nothing at all.
    """
    with _lock, _library() as library:
        if library is None:
            return {}
        found = {device: _read(library, device) for device in devices}
        return {device: gpu for device, gpu in found.items() if gpu is not None}


@contextmanager
def _library() -> Iterator[ctypes.CDLL | None]:
    try:
        library = ctypes.CDLL(_LIBRARY)
        begun = library.nvmlInit_v2() == 0
    except (OSError, AttributeError):
        yield None
        return
    if not begun:
        yield None
        return
    try:
        yield library
    finally:
        library.nvmlShutdown()


def _read(library: ctypes.CDLL, device: str) -> Gpu | None:
    handle = ctypes.c_void_p()
    try:
        if device.isdigit():
            failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(device)), ctypes.byref(handle))
        else:
            failed = library.nvmlDeviceGetHandleByUUID(device.encode(), ctypes.byref(handle))
        name, memory = ctypes.create_string_buffer(_NAME_BYTES), _Memory()
        failed = failed or library.nvmlDeviceGetName(handle, name, ctypes.c_uint(_NAME_BYTES))
        failed = failed or library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        if failed:
            return None
        return Gpu(name.value.decode(errors="replace"), memory.total, memory.used, _processes(library, handle))
    except AttributeError:  # a library from before one of these functions
        return None


def _processes(library: ctypes.CDLL, handle: ctypes.c_void_p) -> dict[int, int]:
    count, entries = ctypes.c_uint(_MOST_PROCESSES), (_Process * _MOST_PROCESSES)()
    try:
        failed = library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), entries)
    except AttributeError:
        return {}
    if failed:
        return {}
    untold = ctypes.c_ulonglong(-1).value
    return {entry.pid: 0 if entry.used == untold else entry.used for entry in entries[: count.value]}
