"""Digests of memory by blocks, so that a change of one place sends one block."""

from __future__ import annotations

import functools
import hashlib
import math
from typing import Any

from det_native.heap.ownership import is_offered

#: Flag of classes, of which the sources of CPython say: made by a class statement.
HEAP = 1 << 9
_BLOCK = 4 << 20
#: Bytes of one array of which all is read; of larger ones a sample of each block.
_WHOLE = 4 << 30
_SAMPLE = 1 << 12
#: Bytes of changed blocks of one array that are copied, whatever the limit of what travels is.
_MOST = 8 << 30


def digest(data: Any) -> str:
    """Return a short digest of bytes."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()[:20]


def digests(data: Any) -> tuple[str, ...]:
    """Return a digest of each block of bytes."""
    view = memoryview(data).cast("B")
    blocks = (view[start : start + _BLOCK] for start in range(0, view.nbytes, _BLOCK))
    return tuple(map(digest if view.nbytes <= _WHOLE else _digest_of_sample, blocks))


def _digest_of_sample(block: memoryview) -> str:
    step = max(1, block.nbytes // _SAMPLE) | 1
    return digest(b"".join((block[:_SAMPLE], block[-_SAMPLE:], bytes(block[::step]))))


def changed_blocks(data: Any, before: tuple[str, ...], now: tuple[str, ...]) -> list[tuple[int, bytes]]:
    """Return offset and bytes of the blocks whose digests differ; all if there are more or fewer than before."""
    view = memoryview(data).cast("B")
    places = [place for place in range(len(now)) if len(before) != len(now) or before[place] != now[place]]
    if len(places) * _BLOCK > _MOST:
        raise OverflowError(f"more than {_MOST >> 30} GB of it have changed")
    return [(place * _BLOCK, bytes(view[place * _BLOCK : (place + 1) * _BLOCK])) for place in places]


def size_of(obj: Any) -> int:
    """Return the bytes of an object, without those that it holds, as a library's class says; 0 where none can tell."""
    cls: Any = type(obj)
    has_bytes, has_type, base = _readers_of_size(cls)
    try:
        size = obj.nbytes if has_bytes else 0
        if not size and has_type and is_offered(type(obj.dtype), "size"):  # a variable of TensorFlow
            size = math.prod(int(length or 0) for length in obj.shape) * obj.dtype.size
        return max(int(size() if callable(size) else size), int(base.__sizeof__(obj)))
    except Exception:  # noqa: BLE001 (an object of a library may raise anything)
        return 0


@functools.lru_cache(maxsize=4096)
def _readers_of_size(cls: Any) -> tuple[bool, bool, Any]:
    base = next(base for base in cls.__mro__ if not base.__flags__ & HEAP)  # no class statement has made it
    return is_offered(cls, "nbytes"), is_offered(cls, "dtype", "shape"), base
