"""Where the processes of a trial meet: an address and a secret, which rank 0 writes down for the others."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from det_native.errors import RankLostError
from det_native.schema.job import Gang

LOOPBACK = "127.0.0.1"
MEETING_SECONDS = 300.0

_POLL_SECONDS = 0.02


class Listening(NamedTuple):
    """Where a process listens."""

    host: str
    port: int


class Meeting:
    """The ranks of a trial before anything connects them.

    Attributes
    ----------
    secret : bytes
        The same on every rank, once the address is.
    end : float
        Monotonic time at which the waiting ends.
    """

    def __init__(self, gang: Gang, deadline: float) -> None:
        self._place = Path(gang.rendezvous)
        self._deadline = deadline
        self.end = time.monotonic() + deadline
        self.secret = b""

    def share(self, listening: Listening | None) -> Listening:
        """Return, on every rank, where rank 0 listens; it alone gives that.

        Raises
        ------
        RankLostError
            If it gives none in time.
        """
        if listening is not None:
            secret = secrets.token_hex(32)
            _write_privately(self._place, f"{listening.host}:{listening.port} {secret}")
        else:
            listening, secret = self._read()
        self.secret = secret.encode()
        return listening

    def _read(self) -> tuple[Listening, str]:
        while True:
            with suppress(FileNotFoundError):
                address, _, secret = self._place.read_text(encoding="utf-8").strip().partition(" ")
                host, _, port = address.rpartition(":")
                return Listening(host, int(port)), secret
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
