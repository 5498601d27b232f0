"""Connecting to a cluster, or a sentence why that cannot be."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from det_native.master.launch.ray.bridge.addresses import (
    Address,
    RefusedError,
    check_address,
    is_loopback,
    listens_at_loopback_only,
)

_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\d+\.\d+)\S*")
_CLIENT_SECONDS = "15"


@dataclass(frozen=True)
class Connection:
    """A connection to a cluster.

    Attributes
    ----------
    ray : str
        Version of Ray.
    dashboard : str
        Address for browsers, empty where there is none.
    private : bool
        Whether the cluster is used only as long as no other machine can reach it: it lets in everybody.
    """

    address: Address
    ray: str
    dashboard: str = ""
    private: bool = False

    def exposure(self, nodes: Iterable[Mapping[str, Any]]) -> str:
        """Return why the cluster must not be used with these machines, a sentence; empty if it may.

        Parameters
        ----------
        nodes : iterable of mapping
            As ``ray.nodes()`` has them.
        """
        if not self.private:
            return ""
        return exposure(self.address, [str(node["NodeManagerAddress"]) for node in nodes if node["Alive"]])


def connect(text: str, namespace: str, *, trusted: bool) -> Connection:
    """Connect this process to the cluster at an address; no cluster is ever started.

    Parameters
    ----------
    text : str
        ``auto``, ``host:port`` or ``ray://host:port``.
    trusted : bool
        Whether a cluster is used that lets in everybody who reaches it.

    Raises
    ------
    RefusedError
        If that cannot be.
    """
    address = Address.parse(_found() if text == "auto" else text)
    everybody = check_address(address)
    if not everybody:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    if listens_at_loopback_only(address):
        # Ray would put this machine's own address in the place of loopback.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ.setdefault("RAY_CLIENT_RECONNECT_GRACE_PERIOD", _CLIENT_SECONDS)
    # At `host:port` Ray would want the same patch version, too; at `ray://` the same minor version is enough.
    os.environ.setdefault("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    try:
        context = ray.init(address=str(address), namespace=namespace, log_to_driver=False, configure_logging=False)
    except Exception as error:
        raise RefusedError(refusal(str(error), address, ray.__version__), away=_is_away(error)) from error
    dashboard = str(getattr(context, "dashboard_url", "") or "")
    connection = Connection(address, ray.__version__, dashboard, private=everybody and not trusted)
    exposed = connection.exposure(ray.nodes())
    if exposed:
        raise RefusedError(exposed)
    return connection


def exposure(address: Address, reached: Sequence[str]) -> str:
    """Say that others than its own machine can reach a cluster that lets in everybody; empty if none can.

    Parameters
    ----------
    reached : sequence of str
        Where its machines are reached.
    """
    beyond = next((host for host in reached if not is_loopback(host)), None)
    if beyond is None:
        return ""
    return (
        f"Whoever reaches {beyond} can run code on the Ray cluster at {address}: start it with "
        "RAY_AUTH_MODE=token, or say with --ray-trusted that only you reach it."
    )


def refusal(text: str, address: Address, own: str) -> str:
    """Say in one sentence why a connection failed.

    Parameters
    ----------
    text : str
        What Ray says.
    own : str
        Version of Ray here.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    found = [match.groups() for match in _VERSIONS.finditer(text)]
    theirs = next(((version, minor) for version, minor in found if (version, minor) != (own, python)), None)
    if theirs is None:
        lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason is given"]
        reason = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
        return f"Connecting to the Ray cluster at {address} failed, as it does while its head starts: {reason}"
    version, minor = theirs
    if version != own:
        return (
            f"The cluster at {address} runs Ray {version}, and here is Ray {own}: install the same version on both "
            f"sides (pip install 'ray[client]=={version}')."
        )
    return (
        f"The cluster at {address} runs Python {minor}, and here is Python {python}: both sides need the same minor "
        "version."
    )


def _is_away(error: Exception) -> bool:
    return isinstance(error, ConnectionError | TimeoutError)


def _found() -> str:
    """Return the address of the cluster of this machine: that of ``RAY_ADDRESS``, else the running one's."""
    import ray._private.services as services

    try:
        found = services.get_ray_address_from_environment("auto", None)
    except (ConnectionError, ValueError) as error:
        raise RefusedError(
            f"No Ray cluster is found on this machine: {str(error).splitlines()[0]}", away=True
        ) from None
    if not found:
        raise RefusedError("No Ray cluster is found on this machine: start one (`ray start --head`).", away=True)
    return str(found)
