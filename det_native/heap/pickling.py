"""Pickles changed objects: those of the beginning by their address, new ones by value, guarded one by one."""

from __future__ import annotations

import os
import pathlib
import types
from collections.abc import Callable, Collection
from typing import Any

import cloudpickle

from det_native.heap.edges import ATOMS, VALUE, Kind, Missing, kind_of
from det_native.heap.kinds.functions import is_importable
from det_native.heap.snapshot import Snapshot

#: The address that an address begins with, what leads on from there, the class, the fingerprint or an empty text.
Way = tuple[int, Any, str, str]
#: Returns how an open file is opened again elsewhere, as ``__reduce__`` does, or NotImplemented.
Reopen = Callable[[Any], Any]

PLAIN = ATOMS | {list, dict, tuple, set, frozenset}


class HeapPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles what a snapshot's objects hold now; those with numbers in `replaced` by value."""

    def __init__(
        self, output: Any, snapshot: Snapshot, replaced: Collection[int], *, exact: bool, reopen: Reopen | None
    ) -> None:
        super().__init__(output, protocol=5)
        self._snapshot, self._replaced, self._exact, self._reopen = snapshot, replaced, exact, reopen
        self._ways: dict[int, int] = {}
        #: Sets and dicts whose members compute their hash, by identity: their place, and themselves.
        self._late: dict[int, tuple[int, Any]] = {}
        self._unfilled: list[Any] = []
        self._folder = f"{os.getcwd()}{os.sep}"
        #: How the receiver gets from its roots to its objects.
        self.ways: list[Way] = []
        #: What could not be pickled, with what it is, and whether nobody misses it.
        self.missing: list[tuple[Any, str, bool]] = []

    def persistent_id(self, obj: Any) -> Any:
        cls = type(obj)
        if cls is str:
            return ("within", obj[len(self._folder) :]) if obj.startswith(self._folder) else None
        if cls in ATOMS or (cls in (tuple, frozenset) and not obj):  # there is one empty tuple in a process
            return None
        if cls is Missing:
            return "missing", obj.what
        number = self._snapshot.numbers.get(id(obj))
        if number is not None:
            if number not in self._replaced:
                return "at", self.way(number)
            if cls not in (set, dict) and not self._snapshot.kinds[number].stays:
                return None
        if cls in PLAIN:
            return self.put_off(obj) if cls in (set, dict) else None
        kind = kind_of(obj)
        if not kind.stays or reopened(obj, self._reopen) is not NotImplemented:
            return None
        self.missing.append((obj, kind.stays, kind.quiet))
        return ("none", "") if kind.quiet else ("missing", kind.stays)

    def dump_all(self, obj: Any) -> None:
        """Pickle an object, then the members of sets and dicts that are filled when all objects have their state."""
        self.dump(obj)
        while self._unfilled:
            batch, self._unfilled = self._unfilled, []
            self.dump([(self._late[id(held)][0], [*held.items()] if type(held) is dict else [*held]) for held in batch])
        self.dump(None)

    def way(self, number: int, *, target: bool = False) -> int:
        """Return the place of an object's address; of a target the receiver compares what it held."""
        place = self._ways.get(number)
        snapshot = self._snapshot
        if place is None:
            before, label = -1, None
            if number:
                before, label = self.way(snapshot.parents[number]), snapshot.label(number)
            place = self._ways[number] = len(self.ways)
            self.ways.append((before, label, snapshot.class_name(number), ""))
        before, label, name, fingerprint = self.ways[place]
        # A name leads to the same object whatever that holds; a place in a list need not.
        if not fingerprint and (target or not isinstance(label, str | None)):
            self.ways[place] = before, label, name, snapshot.fingerprint(number, exact=self._exact)
        return place

    def reducer_override(self, obj: Any) -> Any:
        kind = kind_of(obj)
        try:
            if kind.stays:
                function, arguments = reopened(obj, self._reopen)[:2]
                return open_again, (function, *arguments)
            reduced: Any = NotImplemented if kind is VALUE else self.reduced_by_kind(obj, kind)
            if reduced is not NotImplemented:
                return self.guarded(reduced)
            if issubclass(type(obj), pathlib.PurePath):
                return type(obj), (str(obj),)
            special = super().reducer_override(obj)
            if special is not NotImplemented or issubclass(
                type(obj), type | types.FunctionType | types.BuiltinFunctionType
            ):
                return special
            by_class = self.dispatch_table.get(type(obj))
            reduced = by_class(obj) if by_class else obj.__reduce_ex__(5)
            if isinstance(reduced, str) and not is_importable(obj, reduced):
                raise TypeError("no module has it")
            return self.guarded(reduced)
        except Exception as error:  # noqa: BLE001 (an object of a library may raise anything)
            what = f"of the class {type(obj).__qualname__}, which cannot be pickled ({short(error)})"
            self.missing.append((obj, what, False))
            return Missing, (what,)

    def reduced_by_kind(self, obj: Any, kind: Kind) -> Any:
        """Return how a kind pickles a new object."""
        return kind.reduce(obj)

    def guarded(self, reduced: Any) -> Any:
        """Return how an object is made again, so that one that cannot be made is left out alone."""
        if isinstance(reduced, str):
            return reduced
        parts: list[Any] = [*reduced, *[None] * (6 - len(reduced))]
        function, arguments, state, items, pairs, write = parts
        given = (None, None) if state is None else ((write, state), fill)
        return make, (function, *arguments), given[0], items, pairs, given[1]

    def put_off(self, obj: Any) -> Any:
        """Return what stands for a set or a dict that is filled when all objects have their state; None for others."""
        if not _hashes_state(obj):
            return None
        if id(obj) not in self._late:
            self._late[id(obj)] = len(self._late), obj
            self._unfilled.append(obj)
        return "late", self._late[id(obj)][0], type(obj).__name__


def reopened(obj: Any, reopen: Reopen | None) -> Any:
    """Return how an object that stays in its process is opened in another; NotImplemented if it is not."""
    try:
        return reopen(obj) if reopen else NotImplemented
    except Exception:  # noqa: BLE001 (a file of the user's class may raise anything)
        return NotImplemented


def path_elsewhere(path: str) -> tuple[str, str]:
    """Return what stands for a path of which the reader has another one.

    The parts of a reference are looked at, too: none may be a path.
    """
    return "path", f"={path}"


def _hashes_state(held: Any) -> bool:
    """Whether members of a set, or keys of a dict, compute their hash, for which they have to have their state."""
    return any(type(cls.__hash__) is types.FunctionType for cls in {*map(type, held)})


def short(error: BaseException) -> str:
    """Return an error in a line."""
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def make(function: Any, *arguments: Any) -> Any:
    """Make a new object: stands for the method of :class:`det_native.heap.unpacking.HeapUnpickler`."""


def fill(obj: Any, state: Any) -> None:
    """Give a new object its state: stands for the method."""


def open_again(function: Any, *arguments: Any) -> Any:
    """Open a file of another process: stands for the method."""
