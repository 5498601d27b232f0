"""Seconds that the process spends on what det_native does for the user's code: sending trainings, and waiting for them.

A cell that runs again on a worker does not spend them there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_spent = 0.0
_depth = 0


def spent() -> float:
    """Return the seconds since the start of the process."""
    return _spent


@contextmanager
def own_time() -> Iterator[None]:
    """Count the seconds of the block; one inside of another counts once."""
    global _spent, _depth
    begin = time.perf_counter()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _spent += time.perf_counter() - begin
