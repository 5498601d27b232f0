"""Where the processes of a trial meet: an address on loopback and a secret, which rank 0 writes down for the others."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from det_native.errors import RankLostError
from det_native.schema.job import Gang

LOOPBACK = "127.0.0.1"
MEETING_SECONDS = 300.0

_POLL_SECONDS = 0.02


class Meeting:
    """The ranks of a trial before anything connects them.

    Parameters
    ----------
    gang : Gang
    deadline : float
        Seconds to wait for rank 0.

    Attributes
    ----------
    secret : bytes
        The same on every rank, once the address is.
    end : float
        Monotonic time at which the waiting ends.
    """

    def __init__(self, gang: Gang, deadline: float) -> None:
        self._place = Path(gang.rendezvous)
        self._rank = gang.rank
        self._deadline = deadline
        self.end = time.monotonic() + deadline
        self.secret = b""

    def share(self, port: int | None) -> int:
        """Return, on every rank, the port that rank 0 gives; it listens on loopback.

        Raises
        ------
        RankLostError
            If it gives none in time.
        """
        if self._rank == 0:
            secret = secrets.token_hex(32)
            _write_privately(self._place, f"{LOOPBACK}:{port} {secret}")
            address = f"{LOOPBACK}:{port}"
        else:
            address, secret = self._read()
        self.secret = secret.encode()
        return int(address.rpartition(":")[2])

    def _read(self) -> tuple[str, str]:
        while True:
            with suppress(FileNotFoundError):
                address, _, secret = self._place.read_text(encoding="utf-8").strip().partition(" ")
                return address, secret
            if time.monotonic() >= self.end:
                raise RankLostError(
                    f"The first process of the trial did not say within {self._deadline:g} seconds where to meet (in "
                    f"{self._place}). The output of that process says why."
                )
            time.sleep(_POLL_SECONDS)


def _write_privately(place: Path, content: str) -> None:
    """Write so that a reader sees all of it or nothing, and nobody else can read it."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(content)
    temporary.replace(place)


@contextmanager
def variables(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def loopback_interface() -> str:
    """Return the name of the network interface that only this machine reaches."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), names[0])
