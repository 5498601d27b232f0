"""What connects the processes that a script of the user's has started: torch, Horovod, or connections of our own."""

from __future__ import annotations

import os
import platform
import socket
import time
from pathlib import Path
from typing import Any, Protocol

from det_harness.ranks.deadlock import LONG_SECONDS
from det_harness.ranks.meeting import LOOPBACK, MEETING_SECONDS, Listening
from det_harness.ranks.network import listener
from det_harness.ranks.ring_communicator import RingCommunicator
from det_harness.ranks.ring_meeting import Places
from det_native.errors import ArgumentError, UnreachableError
from det_native.schema.environment import Ranks
from det_native.schema.home import Home
from det_native.schema.job import Gang

#: Has the secret by which processes on several machines know each other.
SECRET_VARIABLE = "DET_DISTRIBUTED_SECRET"


def connected(ranks: Ranks, cross_rank: int, chief_ip: str | None, port: int) -> RingCommunicator:
    """Connect the processes: the first one listens at an address that all know.

    Raises
    ------
    ArgumentError
        If there are several machines, and no address or secret of theirs is known.
    UnreachableError
        If the port is taken.
    RankLostError
        If a process does not come.
    """
    if ranks.agents > 1 and not chief_ip:
        raise ArgumentError(
            f"DistributedContext(cross_size={ranks.agents}): give chief_ip=, the address of the first machine; "
            "det.get_cluster_info().container_addrs[0] is it in an experiment."
        )
    chief = chief_ip if chief_ip and ranks.agents > 1 else LOOPBACK
    gang = Gang(
        rank=ranks.rank,
        size=ranks.size,
        local_rank=ranks.local_rank,
        local_size=ranks.local_size,
        cross_rank=cross_rank,
        cross_size=ranks.agents,
        rendezvous=str(Home.default().path / "no-meeting" / "place"),  # there is no file: the address is known
    )
    own = LOOPBACK if ranks.agents == 1 else _address_towards(chief, port)
    listening = _listening_at(chief, port) if ranks.rank == 0 else listener(own)
    meeting = _KnownPlace(_secret(ranks.agents))
    with listening:
        here = Listening(own, listening.getsockname()[1])
        places = Places(gang, here, listening, meeting, LONG_SECONDS)
        places.meet(here if ranks.rank == 0 else _reachable(Listening(chief, port), meeting.end))
        return RingCommunicator(places.connect, meeting.secret)


def by_torch() -> tuple[Ranks, int, Exchanges]:
    """Return the place of this process among those of ``torch.distributed``, its machine's, and what connects them."""
    import torch.distributed as distributed

    from det_harness.ranks.torch_communicator import COLLECTIVE_TIMEOUT, TorchCommunicator

    rank, size = distributed.get_rank(), distributed.get_world_size()
    group = distributed.new_group(backend="gloo", timeout=COLLECTIVE_TIMEOUT)
    exchange = TorchCommunicator(rank, size, b"", group=group)
    return *_places(rank, exchange), exchange


def by_horovod(hvd: Any) -> tuple[Ranks, int, Exchanges]:
    """Return the place of this process among those of Horovod, its machine's, and what connects them."""
    exchange = _Horovod(hvd)
    return *_places(exchange.rank, exchange), exchange


class Exchanges(Protocol):
    """What connects processes."""

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank."""


class _KnownPlace:
    """A meeting at an address that every process was given."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.end = time.monotonic() + MEETING_SECONDS


class _Horovod:
    """The processes of Horovod, by its own calls for objects."""

    def __init__(self, hvd: Any) -> None:
        self._hvd = hvd
        self.rank, self.size = int(hvd.rank()), int(hvd.size())

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all processes, by rank."""
        return list(self._hvd.allgather_object(value))

    def broadcast_object(self, value: Any) -> Any:
        """Return the first process's value."""
        return self._hvd.broadcast_object(value, root_rank=0)


def _places(rank: int, exchange: Exchanges) -> tuple[Ranks, int]:
    """Return the place of a process by the names of the machines of all."""
    machines = exchange.all_gather_object((platform.node(), _boot()))
    order = list(dict.fromkeys(machines))
    own = machines[rank]
    here = [number for number, machine in enumerate(machines) if machine == own]
    ranks = Ranks(rank, len(machines), here.index(rank), len(here), agents=len(order))
    return ranks, order.index(own)


def _boot() -> str:
    """Return what tells machines of the same name apart."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _listening_at(chief: str, port: int) -> socket.socket:
    try:
        return socket.create_server((chief, port), family=socket.AF_INET6 if ":" in chief else socket.AF_INET)
    except OSError as error:
        raise UnreachableError(
            f"The first process cannot listen at {chief}, port {port}: {error.strerror or error}. Give another port, "
            "DistributedContext(..., port_offset=1), the same in all processes."
        ) from error


def _address_towards(chief: str, port: int) -> str:
    """Return the address of this machine on the way to another one."""
    with socket.socket(socket.AF_INET6 if ":" in chief else socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((chief, port))
        address: str = asking.getsockname()[0]
        return address


def _reachable(place: Listening, end: float) -> Listening:
    """Wait until the first process listens."""
    while time.monotonic() < end:
        try:
            socket.create_connection(place, 1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            break
    return place


def _secret(machines: int) -> bytes:
    """Return what only the processes of this user know: of the run, of a variable, or of this user's home."""
    from det_native.core.cluster_info import get_cluster_info

    said = os.environ.get(SECRET_VARIABLE)
    if said:
        return said.encode()
    info = get_cluster_info()
    if info is not None and info.session_token:
        return info.session_token.encode()
    if machines > 1:
        raise ArgumentError(
            f"DistributedContext(cross_size={machines}): outside of an experiment the processes need a secret to know "
            f"each other by: set {SECRET_VARIABLE} to the same text on all machines."
        )
    path = Home.default().path / "distributed-secret"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            stream.write(os.urandom(32).hex())
    except FileExistsError:
        pass
    return _read_whole(path)


def _read_whole(path: Path) -> bytes:
    """Return the secret, once the process that makes it has written it."""
    end = time.monotonic() + 10.0
    while len(found := path.read_bytes()) < 64 and time.monotonic() < end:
        time.sleep(0.01)
    return found
