"""What NVIDIA's driver tells of GPUs by its own library (NVML): model, memory, who uses it, and how busy it is."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    busy : float or None
        Percent of the last moment, up to a second, in which it computed; None where the driver does not tell, as for a
        part of a divided GPU.
    """

    name: str
    memory: int
    used: int
    processes: dict[int, int]
    busy: float | None = None


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


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


def driver_cuda() -> str | None:
    """Return the newest CUDA that the driver takes, ``"12.4"``; None where it does not tell."""
    with _lock, _library() as library:
        version = ctypes.c_int(0)
        try:
            failed = library is None or library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version))
        except AttributeError:
            return None
        return None if failed else f"{version.value // 1000}.{version.value % 1000 // 10}"


def own_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the GPUs that this process may use, named as in ``CUDA_VISIBLE_DEVICES``; no other program is asked."""
    restricted = environment.get("CUDA_VISIBLE_DEVICES")
    if restricted is not None:
        named = [item.strip() for item in restricted.split(",")]
        # CUDA itself stops at the first entry that names no device.
        return named[: next((index for index, item in enumerate(named) if item in ("", "-1")), len(named))]
    with _lock, _library() as library:
        count = ctypes.c_uint(0)
        try:
            failed = library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        except AttributeError:
            return []
        return [] if failed else [str(index) for index in range(count.value)]


@contextmanager
def begun_once() -> Iterator[None]:
    """Have the driver's library begun as long as the block lasts: :func:`read_gpus` in it is quick."""
    with ExitStack() as stack:
        with _lock:
            stack.enter_context(_library())
        try:
            yield
        finally:
            with _lock:
                stack.close()


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
        model, processes = name.value.decode(errors="replace"), _processes(library, handle)
        return Gpu(model, memory.total, memory.used, processes, _busy(library, handle))
    except AttributeError:  # a library from before one of these functions
        return None


def _busy(library: ctypes.CDLL, handle: ctypes.c_void_p) -> float | None:
    rates = _Utilization()
    try:
        failed = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates))
    except AttributeError:
        return None
    return None if failed else float(rates.gpu)


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
