"""Horovod among the processes of a trial: how they find each other, and how they part.

Horovod's own launcher is not used: the processes are there already, and connected. Its settings are environment
variables that it reads when it begins; they are taken back at once, for what the user's code starts is none of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from det_harness.ranks.communicator import Communicator
from det_native.errors import UnsupportedFeatureError
from det_native.frameworks import has_horovod, missing_horovod
from det_native.schema.job import Gang

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.02
_MEGABYTE = 1 << 20


def is_asked_for(config: Mapping[str, Any]) -> bool:
    """Whether an experiment configuration has gradients travel by Horovod."""
    return (config.get("distributed") or {}).get("backend") == "horovod"


def check(config: Mapping[str, Any]) -> None:
    """Refuse, before the processes of a trial meet, a configuration that Horovod is not there for.

    Whoever left later would keep others waiting, which would say so instead.

    Raises
    ------
    MissingDependencyError
        If Horovod is wanted, and not installed or not built for PyTorch.
    UnsupportedFeatureError
        On GPUs, if it was built without NCCL.
    """
    if is_asked_for(config):
        _library()


@contextmanager
def horovod_joined(
    gang: Gang, communicator: Communicator, config: Mapping[str, Any], *, interface: str, deadline: float
) -> Iterator[None]:
    """Have Horovod connect the processes of a trial for the block.

    Parameters
    ----------
    gang : Gang
    communicator : Communicator
        Of the same processes.
    config : mapping
        The experiment configuration; ``optimizations`` tunes Horovod.
    interface : str
        Name of the network interface that its connections are made on.
    deadline : float
        Seconds in which every process has to have begun; Horovod ends a process that waits longer for another.

    Raises
    ------
    MissingDependencyError
        If Horovod is not installed, or was not built for PyTorch.
    UnsupportedFeatureError
        On GPUs, if it was built without NCCL.
    PeerLostError
        If another process is gone.
    """
    horovod = _library()
    settings = {
        **_place_of(gang),
        **_tuning(config),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": interface,
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": _LOOPBACK,
        "HOROVOD_GLOO_TIMEOUT_SECONDS": str(max(1, round(deadline))),
    }
    try:
        with _meeting_place(communicator) as port:
            with _variables({**settings, "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port)}):
                horovod.init()
            communicator.all_gather_object(None)  # until all have begun, the meeting place is open
        yield
    finally:
        horovod.shutdown()


def _library() -> Any:
    if not has_horovod():
        raise missing_horovod()
    import horovod.torch
    import torch

    if torch.cuda.is_available() and not horovod.torch.nccl_built():
        raise UnsupportedFeatureError(
            "distributed.backend: horovod cannot exchange gradients between GPUs here, since Horovod was built without "
            "NCCL: build it with HOROVOD_GPU_OPERATIONS=NCCL, or leave the field out, for torch's own exchange, which "
            "uses NCCL."
        )
    return horovod.torch


def _place_of(gang: Gang) -> dict[str, str]:
    numbers = {
        "RANK": gang.rank,
        "SIZE": gang.size,
        "LOCAL_RANK": gang.local_rank,
        "LOCAL_SIZE": gang.local_size,
        "CROSS_RANK": gang.cross_rank,
        "CROSS_SIZE": gang.cross_size,
    }
    return {"HOROVOD_HOSTNAME": "localhost"} | {f"HOROVOD_{name}": str(number) for name, number in numbers.items()}


def _tuning(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what tunes Horovod, but for variables that the user has set."""
    optimizations = config.get("optimizations") or {}
    tunes_itself = optimizations.get("auto_tune_tensor_fusion") or os.environ.get("HOROVOD_AUTOTUNE", "0") != "0"
    if tunes_itself:
        return {"HOROVOD_AUTOTUNE": "1"}  # what is given besides, Horovod would not tune
    settings = {
        "HOROVOD_FUSION_THRESHOLD": str(optimizations.get("tensor_fusion_threshold", 64) * _MEGABYTE),
        "HOROVOD_CYCLE_TIME": str(optimizations.get("tensor_fusion_cycle_time", 5)),
    }
    return {name: os.environ.get(name, value) for name, value in settings.items()}


@contextmanager
def _meeting_place(communicator: Communicator) -> Iterator[int]:
    """Have the first process tell, for the block, who is where; gives the port, on every process.

    Horovod's ``RendezvousServer`` would listen on every address of the machine.
    """
    if communicator.rank != 0:
        yield communicator.broadcast_object(None)
        return
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    with RendezvousHTTPServer((_LOOPBACK, 0), RendezvousHandler, False) as server:
        answering = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="horovod-rendezvous")
        answering.start()
        try:
            yield communicator.broadcast_object(server.server_address[1])
        finally:
            server.shutdown()
            answering.join()


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
