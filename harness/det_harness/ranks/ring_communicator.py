"""Ranks connected by connections of their own, for frameworks that bring nothing that would connect them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from det_harness.ranks.communicator import Communicator, lost
from det_harness.ranks.ring import Ring
from det_harness.ranks.signed import packed, unpacked


class RingCommunicator(Communicator):
    """The ranks of a trial in a ring.

    Parameters
    ----------
    connect : callable
        Makes a ring, of all ranks at once, by its number.
    rings : list of Ring, optional
        Those of other groups.

    Attributes
    ----------
    ring : Ring
        For arrays, within :func:`in_words`.
    """

    def __init__(self, connect: Callable[[int], Ring], secret: bytes, rings: list[Ring] | None = None) -> None:
        self._connect = connect
        self._rings = [] if rings is None else rings
        self.ring = connect(len(self._rings) + 1)
        self._rings.append(self.ring)
        self.rank, self.size = self.ring.rank, self.ring.size
        self._secret = secret

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank, on every rank."""
        with in_words():
            parts = self.ring.all_gather("all_gather_object", packed(value, self._secret))
        return [unpacked(bytes(part), self._secret) for part in parts]

    def gather_object(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks, by rank, on the first rank, and None on the others."""
        with in_words():
            parts = self.ring.all_gather("gather_object", packed(value, self._secret))
        return [unpacked(bytes(part), self._secret) for part in parts] if self.rank == 0 else None

    def broadcast_object(self, value: Any) -> Any:
        """Return the first rank's value, on every rank; what the others give is not sent."""
        with in_words():
            sent = self.ring.broadcast("broadcast_object", packed(value, self._secret) if self.rank == 0 else b"")
        return value if self.rank == 0 else unpacked(bytes(sent), self._secret)

    def all_reduce_any(self, *flags: bool) -> Callable[[], list[bool]]:
        """Find out which flags are set on any rank; what is returned has the answer already."""
        with in_words():
            parts = self.ring.all_gather("all_reduce_any", bytes(flags))
        answer = [any(of_ranks) for of_ranks in zip(*parts, strict=True)]
        return lambda: answer

    def barrier(self) -> None:
        """Return once every rank has called it."""
        with in_words():
            self.ring.all_gather("barrier", b"")

    def monitored(self, work: Any, *, on_gpu: bool = False) -> Any:
        """Return the handle as it is."""
        return work

    def new_group(self) -> RingCommunicator:
        """Return another communicator of the same ranks, for calls of another thread meanwhile; a collective call."""
        self.barrier()  # the ranks have come equally far, so that their rings have the same numbers
        return RingCommunicator(self._connect, self._secret, self._rings)

    def close(self) -> None:
        """Close all connections, those of other groups too."""
        for ring in self._rings:
            ring.close()


@contextmanager
def in_words() -> Iterator[None]:
    """Let the block fail in words if a rank is gone.

    Raises
    ------
    RankLostError
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: of a connection that a thread has closed meanwhile
        raise lost(error) from error
