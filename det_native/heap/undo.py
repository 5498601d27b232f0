"""Takes back, in place, what has changed in objects since a snapshot."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from det_native.heap.edges import Kind
from det_native.heap.snapshot import Snapshot

#: Bytes of an array of which a copy is kept.
_SMALL = 1 << 20


class Copies:
    """Keeps what a snapshot knows only by a digest.

    Parameters
    ----------
    snapshot : Snapshot
        Of which nothing has changed yet.
    keep : bool
        False for one of which only is known what it knows itself.
    """

    def __init__(self, snapshot: Snapshot, *, keep: bool = True) -> None:
        self._snapshot = snapshot
        self._contents: dict[int, Any] = {}
        for number, kind in enumerate(snapshot.kinds) if keep else ():
            obj = snapshot.objects[number]
            if type(kind).content is Kind.content:
                continue
            with contextlib.suppress(Exception):  # an object of a library may raise anything
                if _size(obj) <= _SMALL:
                    self._contents[number] = kind.content(obj, None, snapshot.facts[number])

    def undo(self) -> None:
        """Give the objects back what they held."""
        snapshot = self._snapshot
        for number, now in snapshot.changes().items():
            kind, obj = snapshot.kinds[number], snapshot.objects[number]
            before = snapshot.children[number], snapshot.facts[number]
            with contextlib.suppress(Exception):  # an object of a library may refuse
                if type(kind).content is not Kind.content:
                    if number in self._contents:
                        kind.put(obj, *before, self._contents[number])
                elif kind.in_place:
                    kind.put(obj, *kind.difference(obj, now, before, lambda child: False))


def _size(obj: Any) -> int:
    size = getattr(obj, "nbytes", 0)
    return max(int(size() if callable(size) else size), sys.getsizeof(obj))
