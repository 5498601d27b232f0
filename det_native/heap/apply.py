"""Puts into the objects of this process what another one has packed."""

from __future__ import annotations

import io
import pickle
from typing import Any

from det_native.heap.edges import Left
from det_native.heap.pack import with_room
from det_native.heap.snapshot import Snapshot


def apply(data: bytes, snapshot: Snapshot) -> list[str]:
    """Put in place what has changed in another process that ran the same program.

    Parameters
    ----------
    data : bytes
        Of :func:`det_native.heap.pack.pack`.
    snapshot : Snapshot
        Of this process, at the same point of the program.

    Returns
    -------
    list of str
        A sentence for each object that is not here.
    """
    ways, packed = pickle.loads(data)
    found, untold = _resolve(ways, snapshot)
    unpickler = _Unpickler(io.BytesIO(packed), found, snapshot)
    entries = with_room(unpickler.load)
    for number, facts, children, content in entries:
        if isinstance(number, Left):
            continue
        snapshot.kinds[number].put(snapshot.objects[number], children, facts, content)
    return untold


def _resolve(ways: list[tuple[int, Any, str]], snapshot: Snapshot) -> tuple[list[int | None], list[str]]:
    found: list[int | None] = []
    untold = []
    for before, label, name in ways:
        if before < 0:
            found.append(0)
            continue
        parent = found[before]
        number = None if parent is None else snapshot.child(parent, label)
        if number is not None and snapshot.class_name(number) != name:
            untold.append(f"{snapshot.path(number)} is of the class {snapshot.class_name(number)} here, {name} there.")
            number = None
        elif number is None and parent is not None:
            untold.append(f"{snapshot.path(parent)} has no {label!r} here.")
        found.append(number)
    return found, untold


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, found: list[int | None], snapshot: Snapshot) -> None:
        super().__init__(stream)
        self._found, self._snapshot = found, snapshot

    def persistent_load(self, reference: Any) -> Any:
        kind, what, quiet = reference
        if kind == "left":
            return None if quiet else Left(what)
        number = self._found[what]
        if kind == "number":
            return Left("an object that is not here") if number is None else number
        return Left("an object that is not here") if number is None else self._snapshot.objects[number]
