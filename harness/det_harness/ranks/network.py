"""The network over which the processes of a trial reach each other: loopback on one machine, else what connects them.

What listens there for a trial is open to whoever reaches it, as it is with every trainer of this kind; see the docs on
trials on several machines.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import psutil

from det_harness.ranks.meeting import LOOPBACK, variables
from det_native.errors import UnreachableError
from det_native.schema.job import Gang

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True)
class Network:
    """Where the other processes of a trial reach this one.

    Attributes
    ----------
    interface : str
        The network interface that has it.
    """

    address: str
    interface: str


def network_of(gang: Gang, config: Mapping[str, Any] | None = None) -> Network:
    """Return the network of a process of a trial.

    Raises
    ------
    UnreachableError
        If this machine has no such interface or address.
    """
    if gang.cross_size == 1:
        return Network(LOOPBACK, loopback_interface())
    wanted: str | None = ((config or {}).get("distributed") or {}).get("interface")
    addresses = _addresses()
    shown = ", ".join(f"{name} ({', '.join(found)})" for name, found in addresses.items() if found)
    if wanted is not None:
        if not addresses.get(wanted):
            raise UnreachableError(
                f"distributed.interface is {wanted}, but the machine {socket.gethostname()} has no network interface "
                f"of that name with an address. It has {shown}."
            )
        return Network(addresses[wanted][0], wanted)
    for name, found in addresses.items():
        if any(_same(address, gang.address) for address in found):
            return Network(gang.address, name)
    raise UnreachableError(
        f"Other machines know {socket.gethostname()} as {gang.address}, but none of its network interfaces has this "
        f"address. Set distributed.interface to the one that connects the machines of the trial: it has {shown}."
    )


def _addresses() -> dict[str, list[str]]:
    """Return the addresses of each interface by which others can reach it: those of IPv4 first."""
    found = {}
    for name, entries in psutil.net_if_addrs().items():
        by_family = [[each.address for each in entries if each.family == family] for family in _FAMILIES]
        found[name] = [address for group in by_family for address in group if "%" not in address]
    return found


def _same(first: str, second: str) -> bool:
    try:
        return ipaddress.ip_address(first) == ipaddress.ip_address(second)
    except ValueError:
        return False


def loopback_interface() -> str:
    """Return the name of the network interface that only this machine reaches."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), names[0])


def listener(address: str) -> socket.socket:
    """Return a socket that listens at an address of this machine, and no other one."""
    return socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)


def torch_in(network: Network, gang: Gang) -> AbstractContextManager[None]:
    """Have torch's backends connect there, in the block."""
    return variables(torch_variables(network, gang))


def torch_variables(network: Network, gang: Gang) -> dict[str, str]:
    """Return by which variables torch's backends connect there; those that the user has set win."""
    wanted = {"GLOO_SOCKET_IFNAME": network.interface}
    if gang.cross_size > 1:
        wanted["NCCL_SOCKET_IFNAME"] = f"={network.interface}"  # this one, and not all that begin so
    return {name: os.environ.get(name) or value for name, value in wanted.items()}
