"""What a master runs its workers by, and where a Ray cluster is."""

from __future__ import annotations

import re

from det_native.errors import ArgumentError

LOCAL, RAY = "local", "ray"
LAUNCHERS = (LOCAL, RAY)
_RAY_ADDRESS = re.compile(r"auto|(ray://)?[^\s:/]+:\d+|(ray://)?\[[0-9a-fA-F:.]+\]:\d+")


def check_ray_address(address: str) -> None:
    """Refuse what cannot be the address of a Ray cluster.

    Raises
    ------
    ArgumentError
        If it is none.
    """
    if not _RAY_ADDRESS.fullmatch(address):
        raise ArgumentError(
            f"The address {address!r} of a Ray cluster (--ray-address, DET_RAY_ADDRESS) must be auto, for a cluster "
            "that runs on this machine, host:port of its head, or ray://host:port."
        )
