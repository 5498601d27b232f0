"""Puts into the objects of this process what another one has packed."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from det_native.heap import pickling
from det_native.heap.edges import Missing
from det_native.heap.pickling import Way, short
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
    addresses = Addresses(snapshot, exact=exact, exact_there=exact_there)
    for way in ways:
        addresses.add(way)
    sentences = addresses.sentences
    unpickler = HeapUnpickler(io.BytesIO(b"".join(parts)), addresses, snapshot, reopen=reopen)
    try:
        entries = run_with_deep_stack(unpickler.load_all)
    except Exception as error:  # noqa: BLE001 (a class of the user's may raise anything)
        return [f"What the training changed cannot be read here ({short(error)}): everything stayed as it was."]
    for number, facts, children, content in entries:
        if isinstance(number, Missing):
            continue
        if isinstance(children, bytes):
            children = pickle.loads(children)
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        if not reopen and isinstance(kind, NamespaceKind | FrameKind):
            bound = kind.bound_since(obj, snapshot.children[number], snapshot.facts[number])
            children = [Left() if name in bound else value for name, value in zip(facts, children, strict=True)]
            content = [name for name in content if name not in bound]
        try:
            snapshot.kinds[number].write_state(snapshot.objects[number], children, facts, content)
        except Exception as error:  # noqa: BLE001 (an object of a library may refuse)
            sentences.append(f"`{snapshot.path(number)}` cannot be set ({short(error)}): it stayed as it was.")
    return sentences


class Addresses:
    """The objects of this process to which the addresses of another lead.

    Attributes
    ----------
    numbers : list of int or None
    differing : set of int
        Places of addresses whose objects held something else: they may be referred to, and keep their state.
    sentences : list of str
    """

    def __init__(self, snapshot: Snapshot, *, exact: bool, exact_there: bool) -> None:
        self._snapshot, self._exact, self._exact_there = snapshot, exact, exact_there
        self.numbers: list[int | None] = []
        self.differing: set[int] = set()
        self.sentences: list[str] = []

    def add(self, way: Way) -> None:
        """Follow the next address."""
        self.numbers.append(self._follow(*way) if way[0] >= 0 else 0)

    def _follow(self, before: int, label: Any, name: str, fingerprint: str) -> int | None:
        snapshot = self._snapshot
        parent = self.numbers[before]
        if parent is None:
            return None
        number = snapshot.child(parent, label)
        path = f"{snapshot.path(parent)}{snapshot.kinds[parent].step(label)}" if parent >= snapshot.first else label
        if number is None:
            reason = "is not here" if label is not None else "looks like another member of its set"
            self.sentences.append(f"`{path}` {reason}: it stayed as it was.")
            return None
        if snapshot.class_name(number) != name:
            if not snapshot.kinds[number].quiet:
                self.sentences.append(f"`{path}` is of the class {name} on the worker: it stayed as it was.")
            return None
        if fingerprint and self._differs(number, fingerprint):
            self.sentences.append(
                f"`{path}` stayed as it was: it held something else on the worker when the training began."
            )
            if not isinstance(label, str):
                return None
            self.differing.add(len(self.numbers))
        return number

    def _differs(self, number: int, fingerprint: str) -> bool:
        if self._exact_there and not self._exact:
            return False
        return self._snapshot.fingerprint(number, exact=self._exact_there) != fingerprint


class HeapUnpickler(pickle.Unpickler):
    """Reads what :class:`det_native.heap.pickling.HeapPickler` has written."""

    def __init__(self, stream: io.BytesIO, addresses: Addresses, snapshot: Snapshot, *, reopen: bool) -> None:
        super().__init__(stream)
        self._addresses, self._snapshot, self._reopen = addresses, snapshot, reopen
        self._late: dict[int, Any] = {}
        self._folder = f"{os.getcwd()}{os.sep}"

    def load_all(self) -> Any:
        """Return what was packed, with the sets and dicts filled whose members compute their hash."""
        entries = self.load()
        while (late := self.load()) is not None:
            for place, members in late:
                self.fill(self._late[place], (type(self._late[place]).update, members))
        return entries

    def persistent_load(self, reference: Any) -> Any:
        kind, place, *more = reference
        if kind == "within":
            return f"{self._folder}{place}"
        if kind == "missing":
            return Missing(place)
        if kind == "none":
            return None
        if kind == "late":
            return self._late.setdefault(place, {} if more[0] == "dict" else set())
        number = self._addresses.numbers[place]
        if number is None or (kind == "target" and place in self._addresses.differing):
            return Missing("an object that is not here")
        return number if kind == "target" else self._snapshot.objects[number]

    def find_class(self, module: str, name: str) -> Any:
        if module == pickling.__name__:
            return getattr(self, name)
        try:
            return super().find_class(module, name)
        except Exception as error:  # noqa: BLE001 (a module that is not here, or that fails)
            self._say(f"{module}.{name} is not here ({short(error)}): its objects stay away.")
            return Missing(f"{module}.{name}")

    def make(self, function: Any, *arguments: Any) -> Any:
        """Make a new object; what stands for it where that fails."""
        try:
            made = function(*arguments)
        except Exception as error:  # noqa: BLE001 (of a library)
            made = Missing(short(error))
        if isinstance(made, Missing) and not any(given is None or isinstance(given, Missing) for given in arguments):
            cls = next((given for given in (*arguments, function) if isinstance(given, type)), type(made))
            self._say(f"A new {cls.__qualname__} cannot be made here: {made.what}.")
        return made

    def fill(self, obj: Any, state: Any) -> None:
        """Give a new object its state, as its class says or as pickle does where nothing else is said."""
        write, given = state
        if isinstance(obj, Missing):
            return
        try:
            if write is not None:
                write(obj, given)
            elif hasattr(obj, "__setstate__"):
                obj.__setstate__(given)
            else:
                attributes, slots = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
                if attributes:
                    vars(obj).update(attributes)
                for name, value in (slots or {}).items():
                    object.__setattr__(obj, name, value)
        except Exception as error:  # noqa: BLE001 (a class may refuse a state)
            self._say(f"A new {type(obj).__qualname__} is incomplete: {short(error)}.")

    def open_again(self, function: Any, *arguments: Any) -> Any:
        """Open a file of the other process."""
        return self.make(function, *arguments) if self._reopen else Missing("an open file")

    def _say(self, sentence: str) -> None:
        self._addresses.sentences.append(sentence)
