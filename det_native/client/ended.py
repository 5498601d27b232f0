"""Who is told once somebody has seen that an experiment has ended: in a wait, or in a live view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Called with the handle, in the thread of whoever has seen it; they may be called more than once.
listeners: list[Callable[[Any], None]] = []


def tell(experiment: Any) -> None:
    """Tell that an experiment has ended."""
    for listener in list(listeners):
        listener(experiment)
