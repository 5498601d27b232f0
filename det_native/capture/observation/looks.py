"""What one look at a name's value tells: a fingerprint, which objects are in it, and what that has cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from det_native.capture.observation.graph import BYTES, Walk
from det_native.capture.observation.kinds import Kinds, is_own
from det_native.inspection.parts import HEAP_TYPE
from det_native.inspection.registry import adapter_of


class Look(NamedTuple):
    """What one look at a name's value tells.

    Attributes
    ----------
    identity : int
        Of the value itself.
    fingerprint : int or None
        Another one where something was seen to be another; None if it could not be looked at.
    exact : bool
        All of it was seen, so that an equal fingerprint means that nothing has changed.
    closed : bool
        Every object that can be reached from it was met, though perhaps not seen into.
    objects : frozenset of int
        Identities of the objects in it that can change.
    looked_up : frozenset of str
        Names of the notebook that functions and methods in it look up.
    full : int or None
        Another one where large arrays are others anywhere; None if they were compared by samples only.
    limit : int
        How many objects were looked at, if there were more; else 0, or -1 where a checksum of all content was taken.
        Only fingerprints with the same limit can be compared.
    cost : int
        Objects that were met.
    read : int
        What was spent on reading large arrays and long containers whole, in objects.
    head : int or None
        The fingerprint of its first objects, for a look that costs next to nothing; None if it was not taken.
    """

    identity: int
    fingerprint: int | None
    exact: bool
    closed: bool
    objects: frozenset[int]
    looked_up: frozenset[str]
    full: int | None = None
    limit: int = 0
    cost: int = 0
    read: int = 0
    head: int | None = None

    @property
    def can_change(self) -> bool:
        """Whether it has anything that can be another one later."""
        return bool(self.objects) or not self.exact


def look(
    value: Any,
    namespace: Mapping[str, Any],
    limit: int = 5_000,
    room: int = 0,
    kinds: Kinds | None = None,
) -> Look:
    """Look at a value.

    Parameters
    ----------
    value : object
    namespace : mapping
        The notebook's, by which its own functions are known.
    limit : int, optional
        How many objects are looked at.
    room : int, optional
        What may be spent on reading large arrays and long containers whole, in objects.
    kinds : Kinds, optional
        What is known of classes, for several looks at the same moment.
    """
    walk = Walk(namespace, limit, Kinds() if kinds is None else kinds, room)
    try:
        fingerprint: int | None = walk.whole(value)
    except Exception:  # noqa: BLE001 (classes of users and of libraries may raise anything when they are looked into)
        fingerprint, walk.exact, walk.closed = None, False, False
    objects, looked_up = frozenset(walk.changeable), frozenset(walk.looked_up)
    cut = 0 if not walk.cut else -1 if walk.exact else limit
    cost, read = min(limit - walk.left, limit + 1), room - walk.room // BYTES
    return Look(id(value), fingerprint, walk.exact, walk.closed, objects, looked_up, walk.full, cut, cost, read)


def of_library(value: Any) -> bool:
    """Whether a value is an object of a library's class, and no data: its threads may change it at any time."""
    kind = type(value)
    own = any(base.__module__ == "__main__" or is_own(base.__module__) for base in kind.__mro__)
    adapter = adapter_of(kind)
    return bool(kind.__flags__ & HEAP_TYPE) and not own and (adapter is None or adapter.changes_alone)
