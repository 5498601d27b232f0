"""How a process takes its role among those of its trial: where they listen, and ``TF_CONFIG``."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_harness.ranks.communicator import Communicator, OneProcess
from det_harness.ranks.exchange import Exchange
from det_harness.ranks.meeting import LOOPBACK, variables
from det_harness.ranks.network import network_of
from det_harness.ranks.own_network import enter_network, has_own_network
from det_native.errors import UnsupportedFeatureError
from det_native.schema.job import Gang
from det_native.schema.roles import Role, roles_of

# In a network of the trial's own nothing else listens.
_FIRST_PORT = 2222


class InRole(OneProcess):
    """Stands for a process that has a role.

    Attributes
    ----------
    ranks : sequence of Role
        Those of all processes, by rank.
    machine, machines : int
        Which of the trial's machines this process is on; the first process is on machine 0.
    """

    def __init__(
        self, role: Role, ranks: Sequence[Role], exchange: Exchange, machine: int = 0, machines: int = 1
    ) -> None:
        super().__init__()
        self.machine, self.machines = machine, machines
        self.role = role
        self.ranks = ranks
        self.exchange = exchange


@contextmanager
def in_its_role(gang: Gang | None, config: Mapping[str, Any], folder: Path) -> Iterator[Communicator]:
    """Take the role that the configuration gives this process; see ``FrameworkHarness.joined``."""
    roles = roles_of(config)
    if not roles:
        yield OneProcess()
        return
    gang = gang or Gang(rank=0, size=1, local_rank=0, local_size=1, rendezvous=str(folder / "rendezvous"))
    exchange = Exchange(folder, len(roles))
    own_network = has_own_network(config)
    if own_network and gang.cross_size > 1:
        raise UnsupportedFeatureError(
            "The roles of this trial are on several machines, so that they cannot have a network of their own: set "
            "distributed.trusted_network: true if all who reach these machines may run code on them."
        )
    if own_network:
        enter_network(gang, exchange)
    role = roles[gang.rank]
    with _port(None if own_network else 0, _FIRST_PORT + gang.rank) as port:
        exchange.say(f"address-{gang.rank}", _address(network_of(gang, config).address, port))
        names = [f"address-{rank}" for rank in range(len(roles))]
        addresses = exchange.await_all(names, "not all processes of the trial were there")
        hosts = dict.fromkeys(address.rpartition(":")[0].strip("[]") for address in addresses)
        settings = {
            "TF_CONFIG": json.dumps(tf_config(roles, gang.rank, addresses)),
            # The port is kept by a socket that never listens, beside which TensorFlow's is allowed then.
            "TF_GRPC_REUSE_PORT": "true",
            "no_grpc_proxy": ",".join(dict.fromkeys(["localhost", LOOPBACK, *hosts])),
        }
        with variables(settings):
            yield InRole(role, roles, exchange, gang.cross_rank, gang.cross_size)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tf_config(roles: Sequence[Role], rank: int, addresses: Sequence[str]) -> dict[str, Any]:
    """Return what ``TF_CONFIG`` tells a process: the cluster, to which no evaluator belongs, and its own task."""
    cluster: dict[str, list[str]] = {}
    for role, address in zip(roles, addresses, strict=True):
        if role.name != "evaluator":
            cluster.setdefault(role.name, []).append(address)
    return {"cluster": cluster, "task": {"type": roles[rank].name, "index": roles[rank].index}}


@contextmanager
def _port(wanted: int | None, own: int) -> Iterator[int]:
    """Give a port for this process to listen on, which nobody else gets meanwhile."""
    if wanted is None:
        yield own
        return
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as kept:
        if kept.family == socket.AF_INET6:
            kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("", wanted))
        yield int(kept.getsockname()[1])
