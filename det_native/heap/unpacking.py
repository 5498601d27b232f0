"""Puts into the objects of this process what another one has packed."""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

from det_native.heap import pickling
from det_native.heap.edges import Left
from det_native.heap.pickling import Fill, Way, short
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack


def put_changes(data: bytes, snapshot: Snapshot, *, exact: bool, reopen: bool) -> list[str]:
    """Put in place what has changed in another process that ran the same program.

    Parameters
    ----------
    data : bytes
        Of :class:`det_native.heap.packing.Packer`.
    snapshot : Snapshot
        Of this process, at the same point of the program.
    exact : bool
        Whether this process is to have held the same values.
    reopen : bool
        Whether files that the other process had opened are opened here.

    Returns
    -------
    list of str
        A sentence for each object that stays as it is.
    """
    (exact_there, ways), packed = pickle.loads(data)
    addresses = Addresses(ways, snapshot, exact_there=exact_there, exact=exact)
    unpickler = HeapUnpickler(io.BytesIO(packed), addresses, snapshot, reopen=reopen)
    entries = run_with_deep_stack(unpickler.load)
    sentences = addresses.sentences
    for number, facts, children, content in entries:
        if isinstance(number, Left):
            continue
        try:
            snapshot.kinds[number].put(snapshot.objects[number], children, facts, content)
        except Exception as error:  # noqa: BLE001 (an object of a library may refuse)
            sentences.append(f"`{snapshot.path(number)}` cannot be set ({short(error)}): it stays as it was.")
    sentences += [f"A new {type(obj).__qualname__} is incomplete: {reason}." for obj, reason in unpickler.failures]
    return sentences


class Addresses:
    """The objects of this process to which the addresses of another lead.

    Parameters
    ----------
    ways : list of Way
    snapshot : Snapshot
    exact_there, exact : bool
        Whether each process is to have held the same values at the beginning.

    Attributes
    ----------
    numbers : list of int or None
    differing : set of int
        Places of addresses whose objects held something else: they may be referred to, and keep their state.
    sentences : list of str
    """

    def __init__(self, ways: list[Way], snapshot: Snapshot, *, exact_there: bool, exact: bool) -> None:
        self._snapshot, self._exact_there, self._exact = snapshot, exact_there, exact
        self.numbers: list[int | None] = []
        self.differing: set[int] = set()
        self.sentences: list[str] = []
        for way in ways:
            self.numbers.append(self._resolve(len(self.numbers), way) if way[0] >= 0 else 0)

    def _resolve(self, place: int, way: Way) -> int | None:
        before, label, name, fingerprint = way
        snapshot = self._snapshot
        parent = self.numbers[before]
        if parent is None:
            return None
        number = snapshot.child(parent, label)
        if number is None or snapshot.class_name(number) != name:
            path = f"{snapshot.path(parent)}{snapshot.kinds[parent].step(label)}" if parent >= snapshot.first else label
            reason = "is not here" if number is None else f"is of the class {snapshot.class_name(number)}, not {name}"
            stays = number is not None and snapshot.kinds[number].quiet
            if not stays:
                self.sentences.append(f"`{path}` {reason}: it stays as it was.")
            return None
        if fingerprint and self._differs(number, fingerprint):
            self.sentences.append(
                f"`{snapshot.path(number)}` stays as it was: it held something else on the worker when the training "
                "began."
            )
            if not isinstance(label, str):
                return None
            self.differing.add(place)
        return number

    def _differs(self, number: int, fingerprint: str) -> bool:
        if self._exact_there and not self._exact:
            return False
        return self._snapshot.fingerprint(number, exact=self._exact_there) != fingerprint


class HeapUnpickler(pickle.Unpickler):
    """Reads what :class:`det_native.heap.pickling.HeapPickler` has written.

    Attributes
    ----------
    failures : list of (object, str)
        New objects whose class refuses their state.
    """

    def __init__(self, stream: io.BytesIO, addresses: Addresses, snapshot: Snapshot, *, reopen: bool) -> None:
        super().__init__(stream)
        self._addresses, self._snapshot, self._reopen = addresses, snapshot, reopen
        self.failures: list[tuple[Any, str]] = []

    def persistent_load(self, reference: Any) -> Any:
        kind, place, *more = reference
        if kind == "kept":
            return Left(place)
        if kind == "left":
            return None if more[0] else Left(place)
        number = self._addresses.numbers[place]
        if number is None or (kind == "target" and place in self._addresses.differing):
            return Left("an object that is not here")
        return number if kind == "target" else self._snapshot.objects[number]

    def find_class(self, module: str, name: str) -> Any:
        if not self._reopen and (module, name) == (pickling.__name__, pickling.open_again.__name__):
            return lambda *arguments: None
        if (module, name) == (pickling.__name__, Fill.__name__):
            return functools.partial(Fill, failures=self.failures)
        try:
            return super().find_class(module, name)
        except Exception as error:  # noqa: BLE001 (a module that is not here, or that fails)
            self._addresses.sentences.append(f"{module}.{name} is not here ({short(error)}): its objects stay away.")
            return Left(f"{module}.{name}")
