"""Horovod among the processes of a trial: how they find each other, and how they part.

Horovod's own launcher is not used: the processes are there already, and connected. Its settings are environment
variables that it reads when it begins; they are taken back at once, for what the user's code starts is none of it.
"""

from __future__ import annotations

import importlib
import ipaddress
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

from det_harness.ranks.communicator import Communicator
from det_harness.ranks.meeting import Listening, variables
from det_harness.ranks.network import Network, network_of
from det_native.errors import UnreachableError, UnsupportedFeatureError
from det_native.frameworks import has_horovod, missing_horovod
from det_native.schema.job import Gang

Library = Literal["torch", "tensorflow"]

_POLL_SECONDS = 0.02
_MEGABYTE = 1 << 20


def is_asked_for(config: Mapping[str, Any]) -> bool:
    """Whether an experiment configuration has gradients travel by Horovod."""
    return (config.get("distributed") or {}).get("backend") == "horovod"


def check(config: Mapping[str, Any], library: Library = "torch") -> None:
    """Refuse, before the processes of a trial meet, a configuration that Horovod is not there for.

    Whoever left later would keep others waiting, which would say so instead.

    Raises
    ------
    MissingDependencyError
        If Horovod is wanted, and not installed or not built for the framework.
    UnsupportedFeatureError
        On GPUs, if it was built without NCCL.
    """
    if is_asked_for(config):
        _library(library)


@contextmanager
def horovod_joined(
    gang: Gang,
    communicator: Communicator,
    config: Mapping[str, Any],
    library: Library = "torch",
    *,
    deadline: float,
) -> Iterator[None]:
    """Have Horovod connect the processes of a trial for the block, if it is wanted.

    It is where the configuration asks for it; for TensorFlow also where it exchanges between GPUs on every rank, which
    nothing else does there.

    Parameters
    ----------
    communicator : Communicator
        Of the same processes.
    config : mapping
        The experiment configuration; ``optimizations`` tunes Horovod.
    library : {"torch", "tensorflow"}
        Which part of Horovod is used; the other framework is not imported.
    deadline : float
        Seconds in which every process has to have begun; Horovod ends a process that waits longer for another.

    Raises
    ------
    MissingDependencyError
        If Horovod is not installed, or was not built for the framework.
    UnsupportedFeatureError
        On GPUs, if it was built without NCCL.
    RankLostError
        If another process is gone.
    """
    quicker = library == "tensorflow" and all(communicator.all_gather_object(_is_quicker(library)))
    if not is_asked_for(config) and not quicker:
        yield
        return
    network = network_of(gang, config)
    with _started(gang, config, library, communicator, network, deadline):
        yield


@contextmanager
def _started(
    gang: Gang,
    config: Mapping[str, Any],
    library: Library,
    communicator: Communicator,
    network: Network,
    deadline: float,
) -> Iterator[None]:
    """Start Horovod for the block."""
    horovod = _library(library)
    if ":" in network.address:
        raise UnsupportedFeatureError(
            f"Horovod meets at addresses of IPv4 only, and this machine's is {network.address}: set "
            "distributed.interface to a network interface that has one, on every machine of the trial."
        )
    if gang.cross_size > 1:
        _check_name(network)
    settings = {
        **_place_of(gang),
        **_tuning(config),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": os.environ.get("HOROVOD_GLOO_IFACE") or network.interface,
        "HOROVOD_GLOO_TIMEOUT_SECONDS": str(max(1, round(deadline))),
    }
    try:
        with _meeting_place(gang.rank, network, communicator.broadcast_object) as first:
            settings |= {
                "HOROVOD_GLOO_RENDEZVOUS_ADDR": first.host,
                "HOROVOD_GLOO_RENDEZVOUS_PORT": str(first.port),
            }
            with variables(settings):
                horovod.init()
            communicator.barrier()  # until all have begun, the meeting place is open
        yield
    finally:
        horovod.shutdown()


def _library(name: Library) -> Any:
    if not has_horovod(name):
        raise missing_horovod(part=name)
    library: Any = importlib.import_module(f"horovod.{name}")
    if _on_gpus(name) and not library.nccl_built():
        other = ", or leave the field out, for torch's own exchange, which uses NCCL" if name == "torch" else ""
        raise UnsupportedFeatureError(
            "distributed.backend: horovod cannot exchange gradients between GPUs here, since Horovod was built without "
            f"NCCL: build it with HOROVOD_GPU_OPERATIONS=NCCL{other}."
        )
    return library


def is_started(library: Library) -> bool:
    """Whether gradients travel by Horovod in this process."""
    module: Any = sys.modules.get(f"horovod.{library}")
    return module is not None and bool(module.is_initialized())


def _is_quicker(library: Library) -> bool:
    if not _on_gpus(library) or not has_horovod(library):
        return False
    return bool(importlib.import_module(f"horovod.{library}").nccl_built())


def _on_gpus(name: Library) -> bool:
    framework: Any = importlib.import_module(name)
    return bool(framework.cuda.is_available() if name == "torch" else framework.config.list_physical_devices("GPU"))


def _place_of(gang: Gang) -> dict[str, str]:
    # To Horovod, "cross" are the processes with the same local rank: a machine with fewer has none of them.
    with_one = [machine for machine, size in enumerate(gang.local_sizes or [gang.size]) if size > gang.local_rank]
    numbers = {
        "RANK": gang.rank,
        "SIZE": gang.size,
        "LOCAL_RANK": gang.local_rank,
        "LOCAL_SIZE": gang.local_size,
        "CROSS_RANK": with_one.index(gang.cross_rank),
        "CROSS_SIZE": len(with_one),
    }
    return {"HOROVOD_HOSTNAME": gang.address or "localhost"} | {
        f"HOROVOD_{name}": str(number) for name, number in numbers.items()
    }


def _check_name(network: Network) -> None:
    """See that Horovod will listen where other machines reach it.

    For its first connections it takes the interface that it is given, but for those of its process sets the address of
    the machine's name.
    """
    name = socket.gethostname()
    address = _address_of(name)
    if not address or ipaddress.ip_address(address).is_loopback:
        raise UnreachableError(
            f"Horovod listens at the address of the machine's name, and {name} is {address or 'no known name'} here, "
            f"where no other machine reaches it: have /etc/hosts say {network.address} for that name, and likewise on "
            "each machine of the trial."
        )


def _address_of(name: str) -> str:
    """Return the first address of a name that is one of this machine's; empty if there is none."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    for family, kind, _, _, address in found:
        with suppress(OSError), socket.socket(family, kind) as bound:
            bound.bind(address)
            return str(address[0]).partition("%")[0]
    return ""


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
def _meeting_place(
    rank: int, network: Network, announce: Callable[[Listening | None], Listening]
) -> Iterator[Listening]:
    """Have the first process tell, for the block, who is where; gives where it listens, on every process.

    Horovod's ``RendezvousServer`` would listen on every address of the machine.
    """
    if rank != 0:
        yield announce(None)
        return
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    class Server(RendezvousHTTPServer):  # type: ignore[misc]  # Horovod has no types
        def server_bind(self) -> None:
            socketserver.TCPServer.server_bind(self)  # without asking a name server for the machine's name

    with Server((network.address, 0), RendezvousHandler, False) as server:
        answering = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="horovod-rendezvous")
        answering.start()
        try:
            yield announce(Listening(network.address, server.server_address[1]))
        finally:
            server.shutdown()
            answering.join()
