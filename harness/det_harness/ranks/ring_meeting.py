"""How ranks in a ring find each other: rank 0 writes down where it listens, and tells each rank where the others do.

Who connects proves that it has the secret of the trial, and so does who listens: nothing else gets in.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from det_harness.ranks.communicator import lost
from det_harness.ranks.deadlock import LONG_SECONDS
from det_harness.ranks.meeting import MEETING_SECONDS, Listening, Meeting
from det_harness.ranks.network import listener, network_of
from det_harness.ranks.reach import REACH_SECONDS, reach_first, unreachable
from det_harness.ranks.ring import Ring
from det_harness.ranks.ring_communicator import RingCommunicator
from det_native.errors import RankLostError
from det_native.schema.job import Gang

_DIGEST, _DIGEST_BYTES, _NONCE_BYTES = "sha256", 32, 16
_HELLO = struct.Struct(f"<II{_NONCE_BYTES}s{_DIGEST_BYTES}s")
_LENGTH = struct.Struct("<Q")
# What a stranger that connects gets, before the next one is asked.
_PROOF_SECONDS = 5.0
# A machine that is gone without a word is noticed after this.
_SILENCE_SECONDS = 60
_INTRODUCTION = 0


@contextmanager
def joined_in_ring(
    gang: Gang,
    config: Mapping[str, Any] | None = None,
    *,
    deadline: float = MEETING_SECONDS,
    long_seconds: float = LONG_SECONDS,
) -> Iterator[RingCommunicator]:
    """Connect the processes of a trial for the block; gives what connects them.

    Parameters
    ----------
    long_seconds : float
        See :class:`det_harness.ranks.ring.Ring`.

    Raises
    ------
    UnreachableError
        If machines of the trial do not reach each other.
    RankLostError
        If another process does not come, or has gone before the end of the block.
    """
    network = network_of(gang, config)
    meeting = Meeting(gang, deadline)
    with listener(network.address) as listening:
        own = Listening(network.address, listening.getsockname()[1])
        first = meeting.share(own if gang.rank == 0 else None)
        ranks = Places(gang, own, listening, meeting, long_seconds)
        ranks.meet(first)
        communicator = RingCommunicator(ranks.connect, meeting.secret)
        try:
            yield communicator
            communicator.barrier()  # whoever leaves first closes connections over which another may still be reading
        finally:
            communicator.close()


class Met(Protocol):
    """What is known of ranks that are about to connect: their secret, and until when they wait for each other."""

    secret: bytes
    end: float


class Places:
    """Where the ranks listen, and how one connects to another."""

    def __init__(self, gang: Gang, own: Listening, listening: socket.socket, meeting: Met, long_seconds: float) -> None:
        self._gang = gang
        self._own = own
        self._listening = listening
        self._secret = meeting.secret
        self._end = meeting.end
        self._long_seconds = long_seconds
        self._places = [own] * gang.size

    def meet(self, first: Listening) -> None:
        """Learn where all ranks listen."""
        gang = self._gang
        if gang.rank == 0:
            waiting = {}
            for _ in range(1, gang.size):
                rank, connection = self._accept(_INTRODUCTION)
                waiting[rank] = connection
                self._places[rank] = Listening(*json.loads(_receive(connection)))
            for connection in waiting.values():
                _send(connection, json.dumps(self._places).encode())
                connection.close()
            return
        reach_first(gang, first.host, first.port, self._end)
        with self._call(first, _INTRODUCTION) as connection:
            _send(connection, json.dumps(self._own).encode())
            with self._in_time(connection):
                self._places = [Listening(*place) for place in json.loads(_receive(connection))]

    def connect(self, number: int) -> Ring:
        """Make a ring; all ranks make it, and each of several has a number of its own, from 1."""
        gang = self._gang
        accepted: list[socket.socket | RankLostError] = []

        def accept() -> None:
            try:
                accepted.append(self._accept(number)[1])
            except RankLostError as error:
                accepted.append(error)

        self._end = max(self._end, time.monotonic() + MEETING_SECONDS) if number > 1 else self._end
        accepting = threading.Thread(target=accept, name="det-ring", daemon=True)
        accepting.start()
        following = self._call(self._places[(gang.rank + 1) % gang.size], number)
        accepting.join()
        preceding = accepted[0]
        if isinstance(preceding, RankLostError):
            following.close()
            raise preceding
        for connection in (following, preceding):
            _prepare(connection)
        return Ring(gang.rank, gang.size, following, preceding, self._long_seconds)

    def _call(self, place: Listening, number: int) -> socket.socket:
        """Return a connection to a rank that knows the secret."""
        try:
            connection = socket.create_connection(place, min(REACH_SECONDS, self._left()))
        except OSError as error:
            if place.host == self._own.host:
                raise lost(error) from error
            problem = f"port {place.port}: {error.strerror or error}"
            raise unreachable(self._own.host, place.host, problem) from error
        with self._in_time(connection):
            theirs, own = _exactly(connection, _NONCE_BYTES), secrets.token_bytes(_NONCE_BYTES)
            proof = _proof(self._secret, b"calls", theirs, self._gang.rank, number)
            connection.sendall(_HELLO.pack(self._gang.rank, number, own, proof))
            expected = _proof(self._secret, b"answers", own, self._gang.rank, number)
            if not hmac.compare_digest(_exactly(connection, _DIGEST_BYTES), expected):
                raise RankLostError("Another program than a rank of this trial listens at the trial's port.")
        return connection

    def _accept(self, number: int) -> tuple[int, socket.socket]:
        """Return the next rank that connects for this, and its connection."""
        while True:
            self._listening.settimeout(self._left())
            try:
                connection, _ = self._listening.accept()
            except TimeoutError as error:
                raise self._missing() from error
            with suppress(OSError):
                connection.settimeout(_PROOF_SECONDS)
                own = secrets.token_bytes(_NONCE_BYTES)
                connection.sendall(own)
                rank, wanted, theirs, proof = _HELLO.unpack(_exactly(connection, _HELLO.size))
                known = hmac.compare_digest(proof, _proof(self._secret, b"calls", own, rank, wanted))
                if known and wanted == number:
                    connection.sendall(_proof(self._secret, b"answers", theirs, rank, wanted))
                    return rank, connection
            connection.close()

    @contextmanager
    def _in_time(self, connection: socket.socket) -> Iterator[None]:
        connection.settimeout(self._left())
        try:
            yield
        except TimeoutError as error:
            connection.close()
            raise self._missing() from error
        except OSError as error:
            connection.close()
            raise lost(error) from error

    def _left(self) -> float:
        return max(self._end - time.monotonic(), 0.001)

    def _missing(self) -> RankLostError:
        return RankLostError(
            f"Not all {self._gang.size} processes of the trial were there in time. The output of the missing processes "
            "says why."
        )


def _prepare(connection: socket.socket) -> None:
    """Have a connection wait as long as it takes, for a rank that is there."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": _SILENCE_SECONDS * 1000}
    for name, value in silence.items():
        option = getattr(socket, name, None)  # not every system has all
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _proof(secret: bytes, direction: bytes, nonce: bytes, rank: int, number: int) -> bytes:
    return hmac.digest(secret, direction + nonce + struct.pack("<II", rank, number), _DIGEST)


def _exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        received = connection.recv(count - len(content))
        if not received:
            raise ConnectionError("it has closed the connection")
        content += received
    return content


def _send(connection: socket.socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)) + content)


def _receive(connection: socket.socket) -> bytes:
    return _exactly(connection, _LENGTH.unpack(_exactly(connection, _LENGTH.size))[0])
