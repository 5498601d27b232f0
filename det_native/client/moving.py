"""What sends the program of a run to a cluster: registered by the room that submits; handles do not import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_native.imports import load

#: Takes the source, the experiment's id, the place, changes of the configuration, and the master's address.
Mover = Callable[[Any, int, str, Any, "str | None"], Any]

_movers: list[Mover] = []


def register(mover: Mover) -> None:
    """Make `mover` what handles move runs by."""
    _movers[:] = [mover]


def mover() -> Mover:
    """Return what moves runs."""
    if not _movers:  # a handle that was made without the room that submits
        load("det_native.experimental")
    return _movers[0]
