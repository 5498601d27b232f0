"""Ids of runs: whoever starts one makes it, a master or the process of a user that trains."""

from __future__ import annotations

import secrets
import time

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

_last_milliseconds = 0


def new_id() -> str:
    """Return a ULID: 48 bits of milliseconds and 80 random bits, in 26 characters that sort by time.

    Where the clock was set back they go on counting from the last one, so that the newest still is the last.
    """
    global _last_milliseconds
    _last_milliseconds = max(time.time_ns() // 1_000_000, _last_milliseconds + 1)
    return written(_last_milliseconds, secrets.randbits(80))


def written(milliseconds: int, number: int) -> str:
    """Return the id of a moment and 80 bits."""
    number |= milliseconds << 80
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def made_at(run_id: str) -> int:
    """Return the milliseconds since 1970 at which an id was made."""
    number = 0
    for character in run_id:
        number = number << 5 | ALPHABET.index(character)
    return number >> 80
