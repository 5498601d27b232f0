"""What a master runs its workers by, and where a Ray cluster is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from det_native.errors import ArgumentError

LOCAL, RAY = "local", "ray"
LAUNCHERS = (LOCAL, RAY)
_RAY_ADDRESS = re.compile(r"auto|(ray://)?[^\s:/]+:\d+|(ray://)?\[[0-9a-fA-F:.]+\]:\d+")


def check_ray_options(launcher: str, options: Sequence[str]) -> None:
    """Refuse options of a Ray cluster where none would be used.

    Parameters
    ----------
    launcher : str
        The one that will be taken.
    options : sequence of str
        Those that are given, such as ``--ray-address``.

    Raises
    ------
    ArgumentError
        If there are some, and the launcher is another.
    """
    if options and launcher != RAY:
        raise ArgumentError(
            f"{' and '.join(options)} would have no effect, since workers run on this machine alone: add --launcher "
            f"ray, or leave {'it' if len(options) == 1 else 'them'} out."
        )


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
