"""Amounts of disk space, as people write and read them."""

from __future__ import annotations

import re

from det_native.errors import ArgumentError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", re.IGNORECASE)
_SHOWN = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
#: More than any disk has.
_LARGEST = 2**60


def parse_size(text: str, what: str = "the size") -> int:
    """Return the bytes of a text such as ``50GB``, ``1.5 TiB`` or ``800M``.

    Raises
    ------
    ArgumentError
        If it is no size, or none at all.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[(match[2] or "").lower()]) if match else 0
    if not 0 < size <= _LARGEST:
        raise ArgumentError(f"{what}: {text!r} is no amount of disk space; write, for example, 50GB or 500 MiB.")
    return size


def shown_size(size: int) -> str:
    """Return an amount with three digits, such as ``12.3 GB``."""
    for unit, factor in _SHOWN:
        if size >= factor:
            value = size / factor
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{size} bytes" if size != 1 else "1 byte"
