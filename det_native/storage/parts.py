"""How large the parts are in which a file goes to S3."""

from __future__ import annotations

#: S3 takes no more parts of one file.
MOST_PARTS = 10_000
_LEAST = 16 << 20


def part_size(size: int) -> int:
    """Return the bytes of each part of a file of so many; few enough for some to be in memory. Pure."""
    return max(_LEAST, -(-size // (MOST_PARTS - 1)))
