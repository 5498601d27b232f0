"""Batches of a validation for ranks that need each other in each of them, since their models are sharded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from det_harness.ranks.communicator import Communicator

_END = object()


def in_step(batches: Iterable[Any], communicator: Communicator) -> Iterator[tuple[Any, bool]]:
    """Yield as many batches on every rank as the rank with most of them has; a collective iteration.

    Yields
    ------
    batch
        The rank's own; where it has none left, one that was there before, or that another rank has.
    counts : bool
        Whether it is the rank's own.
    """
    stream = iter(batches)
    last: Any = _END
    while True:
        batch = next(stream, _END)
        if batch is not _END:
            last = batch
        some, lacking = communicator.all_reduce_any(batch is not _END, last is _END)()
        if not some:
            return
        if lacking:
            offered = communicator.all_gather_object((last is not _END, None if last is _END else last))
            if last is _END:
                last = next(value for there, value in offered if there)
        yield last, batch is not _END
