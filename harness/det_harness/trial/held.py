"""Reports for which the disk has no room: they wait in memory, to be spooled later or sent from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Characters that wait before the training waits too.
_MOST = 64 << 20


@dataclass(frozen=True)
class Held:
    """A report that waits in memory; `then` is called once it is in the spool, or the master has it."""

    seq: int
    text: str
    durable: bool
    then: Callable[[], None] | None


class HeldReports:
    """What the disk does not take, in order; all later ones wait behind it."""

    def __init__(self) -> None:
        self._reports: list[Held] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._reports)

    @property
    def full(self) -> bool:
        """Whether the training is to wait."""
        return self._size > _MOST

    def add(self, held: Held) -> None:
        """Have a report wait behind all others."""
        self._reports.append(held)
        self._size += len(held.text)

    def first(self, count: int) -> list[Held]:
        """Return the first ones, at most so many."""
        return self._reports[:count]

    def drop(self, count: int) -> None:
        """Forget the first ones."""
        self._size -= sum(len(held.text) for held in self._reports[:count])
        del self._reports[:count]
