"""Ranks in a ring: each sends to the next and receives from the one before it, over connections of their own.

Rank 0 says which operation is next, and the others do that one, whichever of their threads comes to it: a graph of
TensorFlow may run two exchanges in another order on each rank.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from det_harness.ranks.deadlock import LONG_SECONDS, SAME_CALLS
from det_native.errors import TrialDefinitionError

_HEADER = struct.Struct("<q120s")
_LENGTH = struct.Struct("<Q")
_ANY_LENGTH = -1
# A broadcast goes on to the next rank while it arrives.
_PIECE = 4 << 20


class _Operation(NamedTuple):
    """What all ranks do next."""

    name: str
    length: int


class Ring:
    """The operations of connected ranks; several threads may call them, each with names of its own.

    Parameters
    ----------
    following, preceding : socket.socket
        Connections to the next rank and from the one before.
    long_seconds : float
        After how long a wait for another operation than the one that is next is an error.

    Raises
    ------
    OSError
        Of each operation, if another rank is gone.
    TrialDefinitionError
        Of each operation, if the ranks call different ones.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        following: socket.socket,
        preceding: socket.socket,
        long_seconds: float = LONG_SECONDS,
    ) -> None:
        self.rank, self.size = rank, size
        self._following, self._preceding = following, preceding
        self._long_seconds = long_seconds
        self._turns = threading.Condition()
        self._next: _Operation | None = None

    def all_gather(self, name: str, own: bytes | bytearray) -> list[bytes | bytearray]:
        """Return what all ranks give, by rank."""
        parts: list[bytes | bytearray] = [own] * self.size
        with self._turn(_Operation(name, _ANY_LENGTH)):
            for step in range(self.size - 1):
                sent = parts[(self.rank - step) % self.size]
                length = bytearray(_LENGTH.size)
                self._exchange(_LENGTH.pack(len(sent)), length)
                received = bytearray(_LENGTH.unpack(length)[0])
                self._exchange(sent, received)
                parts[(self.rank - step - 1) % self.size] = received
        return parts

    def broadcast(self, name: str, own: bytes | bytearray) -> bytes | bytearray:
        """Return what rank 0 gives."""
        with self._turn(_Operation(name, _ANY_LENGTH)):
            length = bytearray(_LENGTH.pack(len(own)))
            if self.rank > 0:
                self._exchange(b"", length)
            if self._sends_on:
                self._exchange(length, b"")
            content = own if self.rank == 0 else bytearray(_LENGTH.unpack(length)[0])
            view, before = memoryview(content), memoryview(b"")
            for start in range(0, len(content), _PIECE):
                piece = view[start : start + _PIECE]
                if self.rank > 0:
                    self._exchange(before, piece)
                elif self._sends_on:
                    self._exchange(piece, b"")
                before = piece if self._sends_on else before
            if self.rank > 0:
                self._exchange(before, b"")
        return content

    def add_up(self, name: str, array: NDArray[Any]) -> None:
        """Put the sum over all ranks in the place of an array of one dimension; the same bits on each rank."""
        bounds = [array.size * number // self.size for number in range(self.size + 1)]
        parts = [array[start:end] for start, end in pairwise(bounds)]
        with self._turn(_Operation(name, array.nbytes)):
            for step in range(self.size - 1):
                own = parts[(self.rank - step - 1) % self.size]
                received = np.empty_like(own)
                self._exchange(parts[(self.rank - step) % self.size], received)
                np.add(own, received, out=own)
            for step in range(self.size - 1):
                sent, received = parts[(self.rank - step + 1) % self.size], parts[(self.rank - step) % self.size]
                self._exchange(sent, received)

    def close(self) -> None:
        """Close the connections, by which other ranks notice that this one is gone."""
        self._following.close()
        self._preceding.close()

    @property
    def _sends_on(self) -> bool:
        return self.rank + 1 < self.size

    @contextmanager
    def _turn(self, operation: _Operation) -> Iterator[None]:
        """Wait until an operation is the next of all ranks; it is, in the block."""
        with self._turns:
            try:
                if self.rank == 0:
                    self._announce(operation)
                else:
                    self._await(operation)
                yield
            except BaseException:
                self.close()  # the others would wait for ever
                raise
            finally:
                self._next = None
                self._turns.notify_all()

    def _announce(self, operation: _Operation) -> None:
        self._exchange(_HEADER.pack(operation.length, operation.name.encode()[:120]), b"")

    def _await(self, own: _Operation) -> None:
        while self._next is None or self._next.name != own.name[:120]:
            if self._next is None:
                header = bytearray(_HEADER.size)
                self._exchange(b"", header)
                length, name = _HEADER.unpack(header)
                self._next = _Operation(name.rstrip(b"\0").decode(), length)
                if self._sends_on:
                    self._announce(self._next)
                self._turns.notify_all()
            elif not self._turns.wait_for(self._is_next(own), self._long_seconds):
                raise TrialDefinitionError(
                    f"deadlock: slot {self.rank} waits in {own.name}, and slot 0 in {self._next.name}. {SAME_CALLS}"
                )
        if self._next.length != own.length:
            raise TrialDefinitionError(
                f"In {own.name}, slot {self.rank} has {own.length} bytes and slot 0 {self._next.length}: build the "
                "same model on each slot; what differs by slot is data."
            )

    def _is_next(self, own: _Operation) -> Callable[[], bool]:
        return lambda: self._next is None or self._next.name == own.name[:120]

    def _exchange(self, out: Any, into: Any) -> None:
        """Send and receive at once: ranks that all send first would wait for each other."""
        sent, received = _bytes_of(out), _bytes_of(into)
        waiting = select.poll()
        if sent:
            waiting.register(self._following, select.POLLOUT)
        if received:
            waiting.register(self._preceding, select.POLLIN)
        while sent or received:
            for descriptor, _ in waiting.poll():
                if sent and descriptor == self._following.fileno():
                    sent = sent[self._following.send(sent, socket.MSG_DONTWAIT) :]
                    if not sent:
                        waiting.unregister(self._following)
                elif received:
                    count = self._preceding.recv_into(received, 0, socket.MSG_DONTWAIT)
                    if count == 0:
                        raise ConnectionError("it has closed the connection")
                    received = received[count:]
                    if not received:
                        waiting.unregister(self._preceding)


def _bytes_of(content: Any) -> memoryview:
    view = memoryview(content)
    return view.cast("B") if view.nbytes else memoryview(b"")  # an empty one is not cast
