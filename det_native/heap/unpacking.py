"""Puts into the objects of this process what another one has packed."""

from __future__ import annotations

import functools
import io
import os
import pickle
from typing import Any

from det_native.heap import pickling
from det_native.heap.edges import Left
from det_native.heap.names import FrameKind, NamespaceKind
from det_native.heap.pickling import Fill, Way, make, short
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
    (exact_there, ways), parts = pickle.loads(data)
    addresses = Addresses(ways, snapshot, exact_there=exact_there, exact=exact)
    unpickler = HeapUnpickler(io.BytesIO(b"".join(parts)), addresses, snapshot, reopen=reopen)
    try:
        entries = run_with_deep_stack(unpickler.load_all)
    except Exception as error:  # noqa: BLE001 (a class of the user's may raise anything)
        return [f"What the training changed cannot be read here ({short(error)}): everything stayed as it was."]
    sentences = addresses.sentences
    for number, facts, children, content in entries:
        if isinstance(number, Left):
            continue
        if isinstance(children, bytes):
            children = pickle.loads(children)
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if not reopen and isinstance(kind, NamespaceKind | FrameKind):
            bound = kind.bound_since(obj, snapshot.children[number], snapshot.facts[number])
            children = [Left() if name in bound else value for name, value in zip(facts, children, strict=True)]
            content = [name for name in content if name not in bound]
        try:
            kind.put(obj, children, facts, content)
        except Exception as error:  # noqa: BLE001 (an object of a library may refuse)
            sentences.append(f"`{snapshot.path(number)}` cannot be set ({short(error)}): it stayed as it was.")
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
        path = f"{snapshot.path(parent)}{snapshot.kinds[parent].step(label)}" if parent >= snapshot.first else label
        if number is None or snapshot.class_name(number) != name:
            reason = f"is of the class {name} on the worker"
            if number is None:
                reason = "is not here" if label is not None else "looks like another member of its set"
            stays = number is not None and snapshot.kinds[number].quiet
            if not stays:
                self.sentences.append(f"`{path}` {reason}: it stayed as it was.")
            return None
        if fingerprint and self._differs(number, fingerprint):
            self.sentences.append(
                f"`{path}` stayed as it was: it held something else on the worker when the training began."
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
        self._late: dict[int, Any] = {}
        self._folder = f"{os.getcwd()}{os.sep}"

    def load_all(self) -> Any:
        """Return what was packed, with the sets and dicts filled whose members compute their hash."""
        entries = self.load()
        while (late := self.load()) is not None:
            for place, members in late:
                try:
                    self._late[place].update(members)
                except Exception as error:  # noqa: BLE001 (a class of the user's may raise anything)
                    self.failures.append((self._late[place], short(error)))
        return entries

    def persistent_load(self, reference: Any) -> Any:
        kind, place, *more = reference
        if kind == "within":
            return f"{self._folder}{place}"
        if kind == "kept":
            return Left(place)
        if kind == "late":
            return self._late.setdefault(place, {} if more[0] == "dict" else set())
        if kind == "left":
            return None if more[0] else Left(place)
        number = self._addresses.numbers[place]
        if number is None or (kind == "target" and place in self._addresses.differing):
            return Left("an object that is not here")
        return number if kind == "target" else self._snapshot.objects[number]

    def _make(self, function: Any, *arguments: Any) -> Any:
        made = make(function, *arguments)
        if (
            isinstance(made, Left)
            and function is not Left
            and not any(given is None or isinstance(given, Left) for given in arguments)
        ):
            cls = next((given for given in (*arguments, function) if isinstance(given, type)), type(made))
            self._addresses.sentences.append(f"A new {cls.__qualname__} cannot be made here: {made.what}.")
        return made

    def find_class(self, module: str, name: str) -> Any:
        if not self._reopen and (module, name) == (pickling.__name__, pickling.open_again.__name__):
            return lambda *arguments: Left("an open file")
        if (module, name) == (pickling.__name__, Fill.__name__):
            return functools.partial(Fill, failures=self.failures)
        if (module, name) == (pickling.__name__, make.__name__):
            return self._make
        try:
            return super().find_class(module, name)
        except Exception as error:  # noqa: BLE001 (a module that is not here, or that fails)
            self._addresses.sentences.append(f"{module}.{name} is not here ({short(error)}): its objects stay away.")
            return Left(f"{module}.{name}")
