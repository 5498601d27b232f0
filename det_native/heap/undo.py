"""Takes back, in place, what has changed in objects since a snapshot."""

from __future__ import annotations

import contextlib
from typing import Any

from det_native.heap.digests import size_of
from det_native.heap.snapshot import Snapshot

#: Bytes of an array of which a copy is kept.
_SMALL = 1 << 20


class Copies:
    """Keeps what a snapshot, of which nothing has changed yet, knows only by a digest."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._contents: dict[int, Any] = {}
        for number, (kind, obj) in enumerate(zip(snapshot.kinds, snapshot.objects, strict=True)):
            with contextlib.suppress(Exception):  # an object of a library may raise anything
                if size_of(obj) <= _SMALL:
                    self._contents[number] = kind.content(obj, None, snapshot.facts[number])

    def undo(self) -> None:
        """Give the objects back what they held; large arrays keep what they have."""
        snapshot = self._snapshot
        for number, now in snapshot.changes().items():
            kind, obj = snapshot.kinds[number], snapshot.objects[number]
            before = snapshot.children[number], snapshot.facts[number]
            with contextlib.suppress(Exception):  # an object of a library may refuse
                content = self._contents.get(number)
                if content is not None:
                    kind.write_state(obj, *before, content)
                elif kind.in_place:
                    kind.write_state(obj, *kind.difference(obj, now, before, lambda child: False))
